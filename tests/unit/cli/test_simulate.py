"""`edgeweave sim` puts a question to the simulator and shows its answer."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from edgeweave.cli.simulate import Question, run_sim
from edgeweave.errors import InvalidRequestError, PromptTooLongError
from edgeweave.interleave.plans import PLAN_NAMES

TRACE = "\n".join(f'{{"timestamp": {at}, "input_length": 300, "output_length": 20}}' for at in range(0, 500, 50))


@pytest.fixture
def question(tmp_path: Path) -> Question:
    """Ten requests of a trace at 1,000 km, under all plans."""
    path = tmp_path / "trace.jsonl"
    path.write_text(TRACE, encoding="utf-8")
    return Question(
        profile="npu",
        load=str(path),
        plan="all",
        distance_km=1000.0,
        bandwidth_gbit=10.0,
        max_batch_size=8,
        max_prefill_tokens=512,
        max_seq_len=512,
        chunk_tokens=512,
        num_segments=None,
        divide_by=1,
        limit=None,
    )


def shown(question: Question) -> list[str]:
    """Return the lines that are printed on a terminal of 80 columns."""
    output = io.StringIO()
    run_sim(question, console=Console(file=output, width=80))
    return output.getvalue().splitlines()


def test_every_plan_has_a_row_beside_one_place(question: Question) -> None:
    """A row each that fits into 80 columns, and a line each that says where the time went."""
    lines = shown(question)
    rows = [line.split("│")[1].strip() for line in lines if line.startswith("│")]
    assert rows == ["one place", *PLAN_NAMES]
    assert [line.split(":")[0] for line in lines[-len(PLAN_NAMES) :]] == list(PLAN_NAMES)
    assert not any("…" in line for line in lines)


def test_one_place_is_what_others_are_compared_with(question: Question) -> None:
    """Its ratio is 1.00, and a plan over a link has another."""
    ratios = {line.split("│")[1].strip(): line.split("│")[3].strip() for line in shown(question) if "│" in line}
    assert ratios["one place"] == "1.00"
    assert ratios["serial"] != "1.00"


def test_what_cannot_be_simulated_is_said(question: Question) -> None:
    """An unknown plan, a chunk over its budget, and a request that never fits are each one line."""
    with pytest.raises(InvalidRequestError, match="plan '9p' is not known"):
        shown(replace(question, plan="9p"))
    with pytest.raises(InvalidRequestError, match="chunk_tokens 9999 is over max_prefill_tokens 512"):
        shown(replace(question, chunk_tokens=9999))
    with pytest.raises(PromptTooLongError, match="max_seq_len is 64"):
        shown(replace(question, max_seq_len=64, max_prefill_tokens=512))
