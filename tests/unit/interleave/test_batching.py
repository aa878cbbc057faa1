"""How a prefill chunk is formed: first come, first served, within limits that include their bounds."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from edgeweave.interleave.accounts import Account, Accounts, Need, Side
from edgeweave.interleave.batching import Draft, DraftRow, Prefilling, Waiting, form_chunk
from edgeweave.interleave.limits import Limits
from edgeweave.interleave.nouns import KvCapacity

WIDE = Limits(
    max_prefill_batch_size=50, max_prefill_tokens=8192, max_seq_len=8192, chunk_tokens=8192, dynamic_prefill_size=False
)


def asks(num_tokens: int, *, is_recompute: bool = False) -> Waiting:
    """A request with a prompt of `num_tokens` that wants ten tokens."""
    return Waiting(Need(num_tokens, num_tokens + 10), is_recompute)


def form(
    waiting: Sequence[int] = (),
    *,
    prefilling: Sequence[Prefilling] = (),
    limits: Limits = WIDE,
    num_blocks: tuple[int, int] = (100_000, 100_000),
    num_slots: int = 100,
    may_admit: bool = True,
    part_tokens: int | None = None,
) -> Draft:
    """Form a chunk over blocks of one token."""
    edge, cloud = (Account(KvCapacity(1, count)) for count in num_blocks)
    return form_chunk(
        prefilling,
        [asks(num_tokens) for num_tokens in waiting],
        accounts=Accounts({Side.EDGE: edge, Side.CLOUD: cloud}),
        num_slots=num_slots,
        may_admit=may_admit,
        limits=limits,
        part_tokens=part_tokens,
    )


def lengths(draft: Draft) -> list[int]:
    """Tokens of each admitted row."""
    return [row.stop - row.start for row in draft.admitted]


def test_the_token_limit_includes_its_bound() -> None:
    """L27: max(max_prefill_tokens, max_seq_len) tokens fit, one more does not."""
    limits = Limits(max_prefill_tokens=10, max_seq_len=8, dynamic_prefill_size=False)
    assert lengths(form([6, 4, 1], limits=limits)) == [6, 4]
    assert lengths(form([6, 5], limits=limits)) == [6]
    assert lengths(form([6, 5], limits=Limits(max_prefill_tokens=10, max_seq_len=11))) == [6, 5]


def test_the_sequence_limit_includes_its_bound() -> None:
    """L27: max_prefill_batch_size rows, whether continued or admitted."""
    limits = Limits(max_prefill_batch_size=3)
    assert len(form([1] * 5, limits=limits).admitted) == 3
    both = form([1] * 5, prefilling=[Prefilling(1, 5, 6)], limits=limits)
    assert (len(both.continued), len(both.admitted)) == (1, 2)


def test_open_sequences_go_on_before_new_ones_are_admitted() -> None:
    """What is open is continued first, each by at most `chunk_tokens`."""
    draft = form([3], prefilling=[Prefilling(7, 4, 20), Prefilling(8, 0, 2)], limits=Limits(chunk_tokens=5))
    assert draft.continued == (DraftRow(0, 4, 9), DraftRow(1, 0, 2))
    assert draft.admitted == (DraftRow(0, 0, 3),)


def test_a_long_prompt_runs_alone() -> None:
    """L28: from `long_prompt_tokens` on a prompt has chunks of its own, in front and behind."""
    assert form([2048, 1]).admitted == (DraftRow(0, 0, 2048),)
    assert form([2047, 1]).admitted == (DraftRow(0, 0, 2047), DraftRow(1, 0, 1))
    assert len(form([1], prefilling=[Prefilling(1, 512, 2048)]).admitted) == 0


def test_a_long_prompt_behind_a_short_one_is_set_aside_and_keeps_its_order() -> None:
    """L28: those behind it may join the chunk; it is then first in line, in the order of the queue."""
    assert [row.index for row in form([5, 3000, 6, 2500, 7]).admitted] == [0, 2, 4]


def test_a_long_prompt_is_not_overtaken_while_open_work_goes_on() -> None:
    """Behind open sequences it would be set aside for ever, so nobody passes it there."""
    assert form([3000, 1], prefilling=[Prefilling(1, 0, 4)]).admitted == ()


def test_the_dynamic_size_closes_a_chunk() -> None:
    """L29: at 4,096 tokens, or at 2,048 once a prompt of 1,024 or more is in it; the switch turns both off."""
    dynamic = Limits(max_prefill_tokens=100_000, max_seq_len=8192, chunk_tokens=8192)
    assert len(form([1000] * 8, limits=dynamic).admitted) == 5
    assert len(form([1024] * 8, limits=dynamic).admitted) == 2
    assert len(form([1023, 1024, 1, 1], limits=dynamic).admitted) == 3
    static = Limits(max_prefill_tokens=100_000, max_seq_len=8192, chunk_tokens=8192, dynamic_prefill_size=False)
    assert len(form([1000] * 8, limits=static).admitted) == 8


def test_both_sides_must_have_the_blocks() -> None:
    """L30, L32: the prompt and one block more, on the edge and in the cloud; who does not fit stops those behind."""
    assert lengths(form([5, 5, 1], num_blocks=(100, 11))) == [5]
    assert lengths(form([5, 5, 1], num_blocks=(11, 100))) == [5]
    assert lengths(form([5, 5, 1], num_blocks=(12, 12))) == [5, 5]


def test_a_recompute_leaves_a_block_to_grow_into_where_others_run() -> None:
    """L33: it would be preempted again at once otherwise; alone it takes all."""
    accounts = Accounts({Side.EDGE: Account(KvCapacity(1, 10))})
    waiting = [asks(8, is_recompute=True)]
    alone = form_chunk([], waiting, accounts=accounts, num_slots=1, may_admit=True, limits=WIDE)
    assert len(alone.admitted) == 1
    accounts.sides[Side.EDGE].reserve(1, num_blocks=1)
    assert form_chunk([], waiting, accounts=accounts, num_slots=1, may_admit=True, limits=WIDE).is_empty


def test_slots_and_the_ban_on_admission_hold() -> None:
    """No more sequences than there are slots; none at all where nothing may be admitted; open ones go on."""
    assert len(form([1] * 5, num_slots=2).admitted) == 2
    assert form([1] * 5, num_slots=-1).is_empty
    draft = form([1], prefilling=[Prefilling(1, 0, 1)], may_admit=False)
    assert (len(draft.continued), len(draft.admitted)) == (1, 0)


LIMITS = st.builds(
    Limits,
    max_prefill_batch_size=st.integers(1, 6),
    max_prefill_tokens=st.integers(1, 40),
    max_seq_len=st.just(30),
    chunk_tokens=st.integers(1, 30),
    long_prompt_tokens=st.integers(5, 40),
    dynamic_prefill_size=st.booleans(),
)


@given(prompts=st.lists(st.integers(1, 30), min_size=1, max_size=12), limits=LIMITS)
def test_every_prompt_is_served_once_whole_and_nobody_waits_for_ever(prompts: list[int], limits: Limits) -> None:
    """Chunk after chunk, each prompt is covered once and in order; who is first in line is in the next chunk."""
    waiting = list(enumerate(prompts))
    prefilling: list[tuple[int, int]] = []
    covered = dict.fromkeys(range(len(prompts)), 0)
    for _ in range(1_000):
        if not waiting and not prefilling:
            break
        draft = form(
            [tokens for _, tokens in waiting],
            prefilling=[Prefilling(name, start, prompts[name]) for name, start in prefilling],
            limits=limits,
        )
        assert not draft.is_empty, "work is left and no chunk is formed"
        assert prefilling or draft.admitted[0].index == 0, "the first in line was overtaken"
        rows = [(prefilling[row.index][0], row) for row in draft.continued]
        rows += [(waiting[row.index][0], row) for row in draft.admitted]
        assert sum(row.stop - row.start for _, row in rows) <= limits.prefill_budget
        assert len(rows) <= limits.max_prefill_batch_size
        if any(prompts[name] >= limits.long_prompt_tokens for name, _ in rows):
            assert len(rows) == 1, "a long prompt shares its chunk"
        for name, row in rows:
            assert row.start == covered[name]
            covered[name] = row.stop
        admitted = {waiting[row.index][0] for row in draft.admitted}
        started = [name for name, _ in prefilling] + [name for name, _ in waiting if name in admitted]
        waiting = [entry for entry in waiting if entry[0] not in admitted]
        prefilling = [(name, covered[name]) for name in started if covered[name] < prompts[name]]
    assert covered == dict(enumerate(prompts))


def test_a_chunk_to_ride_in_holds_one_even_part_of_a_prompt() -> None:
    """Parts of equal length, as close to the size that is asked for as that allows; parts of two are not mixed."""
    assert lengths(form([10, 10], part_tokens=4)) == [5]
    assert lengths(form([9, 10], part_tokens=4)) == [5]
    assert lengths(form([11], part_tokens=4)) == [4]
    begun = [Prefilling(1, 4, 10), Prefilling(2, 0, 9)]
    assert [(row.start, row.stop) for row in form(prefilling=begun, part_tokens=4).continued] == [(4, 7)]
    assert lengths(form([2, 2, 2], part_tokens=4)) == [2, 2]
    assert lengths(form([10], limits=Limits(chunk_tokens=2), part_tokens=4)) == [2]


@given(num_tokens=st.integers(1, 10_000), part_tokens=st.integers(1, 4096))
def test_no_part_is_half_more_than_asked_for(num_tokens: int, part_tokens: int) -> None:
    """All parts of a prompt together are the prompt, one after the other."""
    start = 0
    while start < num_tokens:
        (row,) = form(prefilling=[Prefilling(1, start, num_tokens)], part_tokens=part_tokens).continued
        assert row.stop - row.start <= max(1, -(-3 * part_tokens // 2))
        start = row.stop
    assert start == num_tokens
