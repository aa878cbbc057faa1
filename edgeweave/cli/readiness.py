"""When a service is ready: what it says itself, by its health service or its ready page."""

import asyncio
import urllib.request

import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from edgeweave.rpc.channels import dial
from edgeweave.settings import TlsSettings

_PAUSE_S = 0.1
_HTTP_TIMEOUT_S = 5.0


async def until_serving(address: str, *, service: str, tls: TlsSettings | None) -> None:
    """Return once `service` at `address` says that it serves; until then, wait without end."""
    request = health_pb2.HealthCheckRequest(service=f"edgeweave.v1.{service.title()}Service")
    async with dial(address, tls=tls) as channel:
        while not await _serves(channel, request):  # noqa: ASYNC110 (another process has no event to wait for)
            await asyncio.sleep(_PAUSE_S)


async def _serves(channel: grpc.aio.Channel, request: health_pb2.HealthCheckRequest) -> bool:
    try:
        answer = await health_pb2_grpc.HealthStub(channel).Check(request, wait_for_ready=True)
    except grpc.aio.AioRpcError:  # it went away, or does not know the service yet
        return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


async def until_page(url: str) -> None:
    """Return once `url` answers with 200; until then, wait without end."""
    while not await asyncio.to_thread(_answers, url):  # noqa: ASYNC110 (another process has no event to wait for)
        await asyncio.sleep(_PAUSE_S)


def _answers(url: str) -> bool:
    without_proxy = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        without_proxy.open(url, timeout=_HTTP_TIMEOUT_S).close()
    except OSError:
        return False
    return True
