"""Whether a request can be taken at all. A pure check; each refusal says what does not fit, with the numbers."""

from edgeweave.errors import EdgeweaveError, InvalidRequestError, OverloadedError, PromptTooLongError
from edgeweave.interleave.accounts import Accounts
from edgeweave.interleave.limits import Limits
from edgeweave.interleave.requests import Request


def refusal_of(
    request: Request, *, limits: Limits, accounts: Accounts, vocab_size: int | None, num_waiting: int
) -> EdgeweaveError | None:
    """Return why `request` cannot be taken now or ever; `None`: it can."""
    largest_id = max(request.tokens)
    if vocab_size is not None and largest_id >= vocab_size:
        return InvalidRequestError(
            f"token id {largest_id} is not one of the model, which has {vocab_size}; use the model's own tokenizer"
        )
    if num_waiting >= limits.max_waiting:
        return OverloadedError(f"{num_waiting} requests wait already (max_waiting); try again later")
    num_prompt, total = len(request.prompt), len(request.prompt) + request.max_tokens
    if total > limits.max_seq_len:
        return PromptTooLongError(
            f"a prompt of {num_prompt} tokens with max_tokens {request.max_tokens} makes {total}, "
            f"and max_seq_len is {limits.max_seq_len}; shorten one of them"
        )
    if not accounts.can_ever_hold(request.need.max_kv_tokens):
        return PromptTooLongError(
            f"a prompt of {num_prompt} tokens with max_tokens {request.max_tokens} needs more KV than one side has "
            f"in all ({_capacities(accounts)}); shorten it, or give the engines more kv_bytes"
        )
    return None


def _capacities(accounts: Accounts) -> str:
    sides = accounts.sides.items()
    return ", ".join(f"{side.value} {a.capacity.num_blocks} x {a.capacity.block_tokens} tokens" for side, a in sides)
