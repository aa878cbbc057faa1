"""The client SDK: tokens, and with the extra `edgeweave[text]` also text, from a scheduler over gRPC.

Knows how to ask a scheduler. Does not know how it serves. `edgeweave.client.text_client` is not loaded before
`Client.with_text` asks for it, so that ids alone need no tokenizer.
"""

from edgeweave.client.client import Client
from edgeweave.client.deltas import TokenDelta, Usage
from edgeweave.client.mesh_state import EngineState, MeshState, SessionState
from edgeweave.client.spans import SpanBatch
from edgeweave.interleave.nouns import FinishReason, Fuse, PlanKind, Sampling

__all__ = [
    "Client",
    "EngineState",
    "FinishReason",
    "Fuse",
    "MeshState",
    "PlanKind",
    "Sampling",
    "SessionState",
    "SpanBatch",
    "TokenDelta",
    "Usage",
]
