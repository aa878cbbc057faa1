"""Forms a prefill chunk from what is open and what waits: first come, first served, within the limits.

Knows the resource rules (L27 to L29) and the accounts. A pure decision: it returns a draft and changes nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from edgeweave.interleave.accounts import Accounts, Need
from edgeweave.interleave.limits import LARGE_SIZE, SMALL_SIZE, SMALL_SIZE_FROM, Limits


@dataclass(frozen=True, slots=True)
class Prefilling:
    """A sequence that is open and has prompt tokens left: `[start, stop)` are not issued yet."""

    sequence: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """A request that waits for admission. `is_recompute` when it has output already."""

    need: Need
    is_recompute: bool


@dataclass(frozen=True, slots=True)
class DraftRow:
    """Token positions `[start, stop)` of entry `index` of what is open, or of what waits."""

    index: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Draft:
    """What a chunk will hold. `admitted` lists rows of requests that have to be admitted for it."""

    continued: tuple[DraftRow, ...] = ()
    admitted: tuple[DraftRow, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether no chunk could be formed."""
        return not (self.continued or self.admitted)


@dataclass(slots=True)
class _Space:
    """What is left of the limits of one chunk."""

    limits: Limits
    part_tokens: int | None = None
    num_tokens: int = 0
    num_rows: int = 0
    size: int = LARGE_SIZE
    is_closed: bool = False

    def has_room(self, num_tokens: int) -> bool:
        most = self.limits.prefill_budget if self.part_tokens is None or not self.num_rows else self.part_tokens
        fits = self.num_tokens + num_tokens <= most
        return not self.is_closed and fits and self.num_rows < self.limits.max_prefill_batch_size

    def part_of(self, num_tokens: int) -> int:
        """Return how many of the tokens that are left of a prompt go into one chunk."""
        most = self.limits.chunk_tokens
        if self.part_tokens is None:
            return min(num_tokens, most)
        num_parts = max(1, round(num_tokens / self.part_tokens), -(-num_tokens // most))
        return -(-num_tokens // num_parts)

    def add(self, num_tokens: int, *, prompt_tokens: int) -> None:
        self.num_tokens += num_tokens
        self.num_rows += 1
        if prompt_tokens >= SMALL_SIZE_FROM:
            self.size = SMALL_SIZE
        if prompt_tokens >= self.limits.long_prompt_tokens:
            self.is_closed = True  # a long prompt has chunks of its own (L28)
        if self.limits.dynamic_prefill_size and self.num_tokens >= self.size:
            self.is_closed = True  # L29


def form_chunk(
    prefilling: Iterable[Prefilling],
    waiting: Iterable[Waiting],
    *,
    accounts: Accounts,
    num_slots: int,
    may_admit: bool,
    limits: Limits,
    part_tokens: int | None = None,
) -> Draft:
    """Return the next chunk: first what is open, then what may be admitted, both in order.

    `num_slots` is how many more sequences may run; with `may_admit` false nothing new is opened. A request that does
    not fit stops the forming, so that nobody overtakes it; only long prompts are set aside for a chunk of their own.
    No more of either is looked at than that takes. With `part_tokens` prompts are cut evenly into parts of about
    that size, and a chunk holds one, or several prompts that are smaller together.
    """
    space = _Space(limits, part_tokens)
    continued = _continue(prefilling, space)
    if not may_admit:
        return Draft(continued)
    return Draft(continued, _admit(waiting, space, accounts=accounts, num_slots=num_slots))


def _continue(prefilling: Iterable[Prefilling], space: _Space) -> tuple[DraftRow, ...]:
    rows: list[DraftRow] = []
    for index, piece in enumerate(prefilling):
        stop = piece.start + space.part_of(piece.stop - piece.start)
        is_long = piece.stop >= space.limits.long_prompt_tokens
        if not space.has_room(stop - piece.start) or (rows and is_long):
            break
        rows.append(DraftRow(index, piece.start, stop))
        space.add(stop - piece.start, prompt_tokens=piece.stop)
    return tuple(rows)


def _admit(waiting: Iterable[Waiting], space: _Space, *, accounts: Accounts, num_slots: int) -> tuple[DraftRow, ...]:
    rows: list[DraftRow] = []
    begins_with_open = space.num_rows > 0
    planned: list[Need] = []
    for index, request in enumerate(waiting):
        num_tokens = request.need.num_tokens
        if space.num_rows and num_tokens >= space.limits.long_prompt_tokens:
            if begins_with_open:
                break  # set aside behind open work it could be overtaken for ever
            continue
        stop = space.part_of(num_tokens)
        if len(rows) >= num_slots or not space.has_room(stop) or not _fits(request, planned, accounts):
            break
        planned.append(request.need)
        rows.append(DraftRow(index, 0, stop))
        space.add(stop, prompt_tokens=num_tokens)
    return tuple(rows)


def _fits(request: Waiting, planned: list[Need], accounts: Accounts) -> bool:
    """Whether all sides have the blocks, after those planned before. A recompute leaves one block to grow into."""
    spare = 1 if request.is_recompute and _others_run(accounts) else 0
    for side in accounts.sides.values():
        taken = sum(need.blocks_at_admission(side.capacity) for need in planned)
        if request.need.blocks_at_admission(side.capacity) + taken + spare > side.num_free:
            return False
    return True


def _others_run(accounts: Accounts) -> bool:
    return any(side.reserved for side in accounts.sides.values())
