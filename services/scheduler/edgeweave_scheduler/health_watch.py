"""Hears when an engine is about to stop: its health service says so before it closes anything."""

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc


async def stops_serving(channel: grpc.aio.Channel, *, service: str) -> bool:
    """Return True when the server behind `channel` says that `service` does not serve: any more, or from the start.

    Returns False when the watch breaks: whoever holds a stream over the same connection learns why in a better way.
    """
    request = health_pb2.HealthCheckRequest(service=service)
    try:
        async for response in health_pb2_grpc.HealthStub(channel).Watch(request):
            if response.status == health_pb2.HealthCheckResponse.NOT_SERVING:
                return True
    except grpc.aio.AioRpcError:
        return False
    return False
