"""How `CloudService` is registered: tasks as ordinary messages, frames as raw bytes.

Knows names and (de)serializers of the two methods. Does not know what they do.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc

from edgeweave.v1 import cloud_pb2 as pb

CLOUD_SERVICE: str = pb.DESCRIPTOR.services_by_name["CloudService"].full_name
CARRY_FRAMES = f"/{CLOUD_SERVICE}/CarryFrames"

RunCloudTasks = Callable[[AsyncIterator[pb.RunCloudTasksRequest], Any], Any]
"""A servicer's method: requests and context in, an async iterator of responses or a coroutine out."""

CarryFrames = Callable[[Any, Any], Awaitable[None]]
"""A servicer's method that reads and writes raw frames through its context."""


def cloud_service_handler(
    run_cloud_tasks: RunCloudTasks, *, carry_frames: CarryFrames
) -> Callable[[grpc.aio.Server], None]:
    """Return what registers both methods of the service at a server; see `GrpcServer.add`.

    A frame is given and taken as bytes: its payload is never copied into a message. See `edgeweave.wire.frame_codec`.
    """
    methods = {
        "RunCloudTasks": grpc.stream_stream_rpc_method_handler(
            run_cloud_tasks,
            request_deserializer=pb.RunCloudTasksRequest.FromString,
            response_serializer=pb.RunCloudTasksResponse.SerializeToString,
        ),
        "CarryFrames": grpc.stream_stream_rpc_method_handler(carry_frames),
    }

    def register(server: grpc.aio.Server) -> None:
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(CLOUD_SERVICE, methods),))

    return register
