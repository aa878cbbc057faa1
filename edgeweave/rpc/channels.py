"""Channels to other services.

Knows the options of a channel and how to wait for its connection. Does not know what is called on it.
"""

import asyncio

import grpc

from edgeweave.errors import UnavailableError
from edgeweave.rpc.options import DEFAULT_KEEPALIVE, Keepalive, Option, common_options, lane_options
from edgeweave.rpc.tls import channel_credentials
from edgeweave.settings.common import TlsSettings


def dial(target: str, *, keepalive: Keepalive = DEFAULT_KEEPALIVE, tls: TlsSettings | None = None) -> grpc.aio.Channel:
    """Return a channel to `target` (`host:port`) for tasks and requests; it connects when it is used."""
    return _channel(target, [*common_options(keepalive), *_client_options()], tls)


def dial_lane(
    target: str, *, keepalive: Keepalive = DEFAULT_KEEPALIVE, tls: TlsSettings | None = None
) -> grpc.aio.Channel:
    """Return a channel to `target` for one lane: a TCP connection of its own, with windows for bulk transfer."""
    own_connection: Option = ("grpc.use_local_subchannel_pool", 1)
    options = [*common_options(keepalive), *_client_options(), *lane_options(), own_connection]
    return _channel(target, options, tls)


async def connect(channel: grpc.aio.Channel, *, target: str, timeout_s: float) -> None:
    """Wait until `channel` is connected; UnavailableError that names `target` if that takes too long."""
    try:
        async with asyncio.timeout(timeout_s):
            await channel.channel_ready()
    except TimeoutError:
        raise UnavailableError(f"nothing answers at {target} within {timeout_s:g} s; is it running?") from None


def _client_options() -> list[Option]:
    return [
        # Both ends belong to the operator; a proxy of the environment is meant for the web.
        ("grpc.enable_http_proxy", 0),
        ("grpc.service_config_disable_resolution", 1),
        # A stream that breaks is not repeated by gRPC: whoever opened it knows what to recompute.
        ("grpc.enable_retries", 0),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 1000),
        ("grpc.max_reconnect_backoff_ms", 2000),
    ]


def _channel(target: str, options: list[Option], tls: TlsSettings | None) -> grpc.aio.Channel:
    if tls is None:
        return grpc.aio.insecure_channel(target, options=options)
    return grpc.aio.secure_channel(target, channel_credentials(tls), options=options)
