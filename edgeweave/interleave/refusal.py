"""Whether a request, or a plan, can be taken at all. Each refusal says what does not fit, with the numbers."""

from edgeweave.errors import EdgeweaveError, InvalidRequestError, OverloadedError, PromptTooLongError
from edgeweave.interleave.accounts import Accounts
from edgeweave.interleave.limits import Limits
from edgeweave.interleave.nouns import Plan
from edgeweave.interleave.requests import Request
from edgeweave.interleave.session import Session


def refusal_of(request: Request, session: Session, *, limits: Limits, num_waiting: int) -> EdgeweaveError | None:
    """Return why `request` cannot be taken now or ever; `None`: it can."""
    if num_waiting >= limits.max_waiting:
        return OverloadedError(f"{num_waiting} requests wait already (max_waiting); try again later")
    largest_id = max(request.tokens)
    if session.vocab_size is not None and largest_id >= session.vocab_size:
        return InvalidRequestError(
            f"token id {largest_id} is not one of the model, which has {session.vocab_size}; "
            "use the tokenizer of the model"
        )
    return _misfit(request, session, limits)


def check_staging(plan: Plan, session: Session, *, limits: Limits) -> None:
    """Raise InvalidRequestError if `plan` has more chunks in flight than the engines can stage."""
    needed = limits.staged_tokens(max_prefills=plan.max_prefills)
    if session.staged_tokens is not None and needed > session.staged_tokens:
        raise InvalidRequestError(
            f"max_prefills {plan.max_prefills} stages {needed} tokens and the engines hold {session.staged_tokens}; "
            "lower it, or raise their staging_bytes"
        )


def _misfit(request: Request, session: Session, limits: Limits) -> EdgeweaveError | None:
    num_prompt = len(request.prompt)
    asked = f"a prompt of {num_prompt} tokens with max_tokens {request.max_tokens}"
    total = num_prompt + request.max_tokens
    if total > limits.max_seq_len:
        return PromptTooLongError(
            f"{asked} makes {total}, and max_seq_len is {limits.max_seq_len}; shorten one of them"
        )
    if session.max_positions is not None and total > session.max_positions:
        return PromptTooLongError(
            f"{asked} makes {total}, and the model computes {session.max_positions}; shorten one of them"
        )
    if not session.accounts.can_ever_hold(request.need.max_kv_tokens):
        return PromptTooLongError(
            f"{asked} needs more KV than one side has in all ({_capacities(session.accounts)}); "
            "shorten it, or give the engines more kv_bytes"
        )
    return None


def _capacities(accounts: Accounts) -> str:
    sides = accounts.sides.items()
    return ", ".join(f"{side.value} {a.capacity.num_blocks} x {a.capacity.block_tokens} tokens" for side, a in sides)
