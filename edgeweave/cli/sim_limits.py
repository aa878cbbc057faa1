"""The limits of a simulated scheduler in the words of the command line, for `edgeweave sim` and `edgeweave plan`.

Knows which of them contradict each other. A simulated queue has no end.
"""

from edgeweave.errors import InvalidRequestError
from edgeweave.interleave.limits import Limits

_ENDLESS = 1 << 30


def sim_limits(*, max_batch_size: int, max_prefill_tokens: int, max_seq_len: int, chunk_tokens: int) -> Limits:
    """Return the limits.

    Raises:
        InvalidRequestError: a piece of a prompt is larger than a chunk.
    """
    if chunk_tokens > max_prefill_tokens:
        raise InvalidRequestError(
            f"chunk_tokens {chunk_tokens} is over max_prefill_tokens {max_prefill_tokens}; lower it"
        )
    return Limits(
        max_batch_size=max_batch_size,
        max_prefill_tokens=max_prefill_tokens,
        max_seq_len=max_seq_len,
        chunk_tokens=chunk_tokens,
        max_waiting=_ENDLESS,
    )
