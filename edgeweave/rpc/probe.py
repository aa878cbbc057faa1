"""Asks the service that runs beside it whether it is well: the health check of an image.

`python -m edgeweave.rpc.probe edge` reads the settings that the service itself reads, from file and variables, so that
address and certificates are written once. Exits with 0 if the service is well, with 1 and one line of why if not.

Knows the health service of gRPC, and the health page of the gateway. Asks for the process as a whole: one that waits
for a lost link is well, and restarting it would not bring the link back.
"""

import argparse
import os
import sys
import urllib.request
from collections.abc import Mapping, Sequence

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from edgeweave.errors import EdgeweaveError, UnavailableError
from edgeweave.rpc.tls import channel_credentials
from edgeweave.settings import CloudSettings, EdgeSettings, GatewaySettings, SchedulerSettings, load
from edgeweave.settings.common import TlsSettings

TIMEOUT_S = 4.0
GRPC_SERVICES: Mapping[str, type[SchedulerSettings | EdgeSettings | CloudSettings]] = {
    "scheduler": SchedulerSettings,
    "edge": EdgeSettings,
    "cloud": CloudSettings,
}


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m edgeweave.rpc.probe", description="Ask a service for its health.")
    parser.add_argument("service", choices=["gateway", *GRPC_SERVICES])
    parser.add_argument("--name", help="name in the certificate of the service; without it, the host that is dialled")
    arguments = parser.parse_args(argv)
    try:
        if arguments.service == "gateway":
            _ask_http(load(GatewaySettings, [], environ))
        else:
            settings = load(GRPC_SERVICES[arguments.service], [], environ)
            _ask_grpc(settings, service=arguments.service, name=arguments.name)
    except EdgeweaveError as error:
        print(error, file=sys.stderr)  # noqa: T201 - a command line speaks so
        return 1
    return 0


def _ask_grpc(settings: SchedulerSettings | EdgeSettings | CloudSettings, *, service: str, name: str | None) -> None:
    host, _, port = settings.listen.rpartition(":")
    target = f"{_dialled(host)}:{port}"
    with _channel(target, tls=settings.tls, name=name) as channel:
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=TIMEOUT_S)
        except grpc.RpcError as failure:
            reason = failure.details() if hasattr(failure, "details") else failure
            raise UnavailableError(f"{service} at {target} does not answer: {reason}") from None
    if answer.status != health_pb2.HealthCheckResponse.SERVING:
        raise UnavailableError(f"{service} at {target} is stopping, or not well; its log says why")


def _ask_http(settings: GatewaySettings) -> None:
    url = f"http://{_dialled(settings.host)}:{settings.port}/health"
    try:
        without_proxy = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        without_proxy.open(url, timeout=TIMEOUT_S).close()
    except OSError as error:
        raise UnavailableError(f"gateway at {url} does not serve: {error}") from None


def _dialled(host: str) -> str:
    """Return where to reach a service of this machine that listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "[::]": "[::1]", "::": "[::1]"}.get(host, host)  # noqa: S104 - read, not bound


def _channel(target: str, *, tls: TlsSettings | None, name: str | None) -> grpc.Channel:
    options: list[tuple[str, int | str]] = [("grpc.enable_http_proxy", 0)]
    if tls is None:
        return grpc.insecure_channel(target, options=options)
    if name is not None:
        options.append(("grpc.ssl_target_name_override", name))
    return grpc.secure_channel(target, channel_credentials(tls), options=options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
