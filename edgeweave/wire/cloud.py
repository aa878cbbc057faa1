"""Nouns of the cloud's task stream, both ways. Nothing here can carry a token id or text."""

from edgeweave.interleave.nouns import (
    Attached,
    Chunk,
    Plan,
    Released,
    ReleaseSequences,
    Timeline,
)
from edgeweave.v1 import cloud_pb2 as pb
from edgeweave.wire.attach import AttachCloud
from edgeweave.wire.fields import Kind, Kinds
from edgeweave.wire.reports import (
    attached_message,
    attached_of,
    released_message,
    released_of,
    timeline_message,
    timeline_of,
)
from edgeweave.wire.tasks import (
    chunk_message,
    chunk_of,
    plan_message,
    plan_of,
    release_message,
    release_of,
)

CloudTask = AttachCloud | Chunk | ReleaseSequences | Plan
"""What the scheduler tells the cloud."""

CloudReport = Attached | Released | Timeline
"""What the cloud tells the scheduler."""


def attach_cloud_message(attach: AttachCloud) -> pb.AttachCloud:
    """Return the message of `attach`."""
    return pb.AttachCloud(session=attach.session, site=attach.site)


def attach_cloud_of(message: pb.AttachCloud) -> AttachCloud:
    """Return the attach in `message`."""
    return AttachCloud(message.session, message.site)


_TASKS: Kinds[pb.RunCloudTasksRequest, CloudTask] = Kinds(
    pb.RunCloudTasksRequest,
    Kind("attach", AttachCloud, attach_cloud_message, attach_cloud_of),
    Kind("chunk", Chunk, chunk_message, chunk_of),
    Kind("release", ReleaseSequences, release_message, release_of),
    Kind("plan", Plan, plan_message, plan_of),
)

_REPORTS: Kinds[pb.RunCloudTasksResponse, CloudReport] = Kinds(
    pb.RunCloudTasksResponse,
    Kind("attached", Attached, attached_message, attached_of),
    Kind("released", Released, released_message, released_of),
    Kind("timeline", Timeline, timeline_message, timeline_of),
)


def cloud_task_message(task: CloudTask) -> pb.RunCloudTasksRequest:
    """Return the stream message that tells the cloud `task`."""
    return _TASKS.encode(task)


def cloud_task_of(message: pb.RunCloudTasksRequest) -> CloudTask:
    """Return the task in `message`; ProtocolError if there is none, or a field cannot be read."""
    return _TASKS.decode(message)


def cloud_report_message(report: CloudReport) -> pb.RunCloudTasksResponse:
    """Return the stream message that tells the scheduler `report`."""
    return _REPORTS.encode(report)


def cloud_report_of(message: pb.RunCloudTasksResponse) -> CloudReport:
    """Return the report in `message`; ProtocolError if there is none, or a field cannot be read."""
    return _REPORTS.decode(message)
