"""What the engines of a contest have to do."""

from contest.cases import Case, Lengths, cases_of, prompts_of, room_for


def test_decoding_at_each_batch_comes_before_the_prefill() -> None:
    cases = cases_of([1, 8], Lengths())
    assert [str(case) for case in cases] == ["decode, batch 1", "decode, batch 8", "prefill of 1,024"]
    assert [case.num_counted_tokens for case in cases] == [64, 512, 1024]


def test_a_smaller_batch_has_the_first_prompts_of_a_larger_one() -> None:
    """So their references are the same, and so is the work of each sequence."""
    small, large = (prompts_of(Case(batch, 16, 4), vocab_size=100) for batch in (2, 5))
    assert large[:2] == small
    assert len(set(large)) == 5
    assert all(len(prompt) == 16 and min(prompt) > 0 and max(prompt) < 100 for prompt in large)


def test_the_room_holds_every_case() -> None:
    room = room_for(cases_of([1, 16], Lengths(prompt_tokens=128, decoded_tokens=64, prefill_tokens=1024)))
    assert (room.max_sequences, room.max_seq_tokens, room.max_prefill_tokens) == (16, 1025, 2048)
