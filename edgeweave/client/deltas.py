"""What a request answers, piece by piece.

Knows the values and their message. Does not know streams.
"""

from dataclasses import dataclass

from edgeweave.interleave.nouns import FinishReason
from edgeweave.v1 import scheduler_pb2 as pb
from edgeweave.wire.fields import optional_enum_field


@dataclass(frozen=True, slots=True)
class Usage:
    """How many tokens a request took."""

    num_prompt_tokens: int
    num_output_tokens: int


@dataclass(frozen=True, slots=True)
class TokenDelta:
    """New output tokens; `first_index` counts from the start of the output. The last one has finish and usage."""

    first_index: int
    token_ids: tuple[int, ...]
    finish: FinishReason | None = None
    usage: Usage | None = None


def token_delta_of(response: pb.GenerateResponse) -> TokenDelta:
    """Return the delta in `response`; ProtocolError if its finish reason is not known here."""
    usage = response.usage
    return TokenDelta(
        first_index=response.first_index,
        token_ids=tuple(response.token_ids),
        finish=optional_enum_field(response, "finish", kind=FinishReason),
        usage=Usage(usage.num_prompt_tokens, usage.num_output_tokens) if response.HasField("usage") else None,
    )
