"""Nouns to messages and back, for all task streams: the one place to import them from.

`x_message(noun)` makes the message, `x_of(message)` the noun. What a peer left out or this version does not
know is a `ProtocolError` that names message and field. Frames of the lanes are in `edgeweave.wire.frames`.
"""

from edgeweave.wire.attach import AttachCloud, AttachEdge
from edgeweave.wire.cloud import (
    CloudReport,
    CloudTask,
    cloud_report_message,
    cloud_report_of,
    cloud_task_message,
    cloud_task_of,
)
from edgeweave.wire.edge import (
    EdgeReport,
    EdgeTask,
    edge_report_message,
    edge_report_of,
    edge_task_message,
    edge_task_of,
    sampling_message,
    sampling_of,
)
from edgeweave.wire.tasks import plan_message, plan_of

__all__ = [
    "AttachCloud",
    "AttachEdge",
    "CloudReport",
    "CloudTask",
    "EdgeReport",
    "EdgeTask",
    "cloud_report_message",
    "cloud_report_of",
    "cloud_task_message",
    "cloud_task_of",
    "edge_report_message",
    "edge_report_of",
    "edge_task_message",
    "edge_task_of",
    "plan_message",
    "plan_of",
    "sampling_message",
    "sampling_of",
]
