"""`edgeweave plan` puts a case to arithmetic and simulator, and shows what to do."""

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from edgeweave.cli import run
from edgeweave.cli.plan import ModelOptions, PlanOptions, run_plan
from edgeweave.cli.plan_advice import advice
from edgeweave.cli.plan_plot import save_plot
from edgeweave.cli.plan_report import print_report
from edgeweave.cli.serve import require_packages
from edgeweave.errors import InvalidRequestError, InvalidSettingsError
from edgeweave.interleave.nouns import BubbleCause, PlanKind
from edgeweave.interleave.plans import PlanRequest
from edgeweave.sim.ceiling import Limit
from edgeweave.sim.curves import Curve, Curves
from edgeweave.sim.recommend import Recommendation
from edgeweave.sim.trials import Trial
from fakes.cases import alike, case_of

TRACE = "\n".join(f'{{"timestamp": {at}, "input_length": 90, "output_length": 8}}' for at in range(0, 400, 50))
CONFIG = {
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_attention_heads": 8,
    "num_hidden_layers": 8,
    "vocab_size": 1000,
}
TIMES = ("step_fixed_us", "step_row_us", "prefill_fixed_us", "prefill_token_us")
KINDS = (PlanKind.SERIAL, PlanKind.ONE_P_ONE_D, PlanKind.TWO_P_ONE_D, PlanKind.ADAPTIVE)
Change = Callable[[Recommendation], Recommendation]


@pytest.fixture(scope="module")
def found() -> Recommendation:
    """1,000 tokens in 1.00 s in one place and in 1.25 s under 2p1d, with figures that are easy to read back."""
    case = case_of(alike(8, prompt_tokens=90, output_tokens=5, max_open=4), distance_km=1000)
    one_place = replace(case.simulate_one_place(), wall_us=1_000_000, num_tokens=1000)
    bubbles_us = {BubbleCause.AWAIT_DECODE_HIDDEN: 250_000}
    outcome = replace(one_place, wall_us=1_250_000, bubbles_us=bubbles_us)
    chosen = Trial(PlanRequest(PlanKind.TWO_P_ONE_D, num_segments=4), outcome, 0.8)
    others = (
        Trial(PlanRequest(kind), outcome, ratio) for kind, ratio in zip(KINDS, (0.5, 0.6, 0.7, 0.75), strict=True)
    )
    return Recommendation(
        case=case,
        max_loss=0.05,
        one_place=one_place,
        ceiling=case.ceiling,
        trials=(*others, chosen),
        chosen=chosen,
        reach_km=450,
        ceiling_km=20_000,
    )


@pytest.fixture
def options(tmp_path: Path) -> PlanOptions:
    """Eight requests of a trace, 1,000 km away."""
    path = tmp_path / "trace.jsonl"
    path.write_text(TRACE, encoding="utf-8")
    return PlanOptions(
        profile="npu",
        model=None,
        load=str(path),
        distance_km=1000.0,
        bandwidth_gbit=10.0,
        max_batch_size=4,
        max_prefill_tokens=512,
        max_seq_len=512,
        chunk_tokens=512,
        max_loss_percent=5.0,
        divide_by=1,
        limit=None,
        plot=None,
        is_json=False,
    )


def shown(options: PlanOptions) -> str:
    """Return what is printed on a terminal of 80 columns."""
    output = io.StringIO()
    run_plan(options, console=Console(file=output, width=80), progress=Console(file=io.StringIO()))
    return output.getvalue()


def test_the_table_as_text(found: Recommendation) -> None:
    """Every figure once, within 80 columns, without lines around it."""
    output = io.StringIO()
    print_report(found, Console(file=output, width=80))
    assert [line.rstrip() for line in output.getvalue().splitlines()] == [
        "alike on round: 1,000 km, 8 Gbit/s, 8 requests",
        "plan                     2p1d",
        "chunks, steps in flight  k 2, m 1",
        "segments x layers        4 x 2",
        "expected throughput      800 tokens/s; one place 1,000",
        "expected loss            20.0%",
        "least loss of any order  none, 11.7% gained; what limits: decode return",
        "all plans, of one place  serial 0.50, 1p1d 0.60, 2p1d 0.80, adaptive 0.75",
        "on the link each way     5 Mbit/s of 8,000",
        "prefill per decode step  9.9 ms needed, the load has 8.0 ms",
        "loses 5% at most         up to 450 km (any order: anywhere on Earth)",
        "At 1,000 km 2p1d loses 20.0%, more than the 5% that is accepted: the load has",
        "enough work to keep within it, but the order of work does not get there; the",
        "cloud waits 20% of the time, and the rest goes into thinner batches and shorter",
        "segments.",
        "A cloud within 450 km would keep it.",
        "Run it with: --plan 2p1d --num-segments 4",
    ]


def lost(limit: Limit, *, num_groups: int = 1) -> Change:
    """Return the change that makes every order of work lose 40 %, for a reason."""

    def change(found: Recommendation) -> Recommendation:
        ceiling = replace(found.ceiling, ratio=0.6, limit=limit, num_groups=num_groups)
        return replace(found, ceiling=ceiling, chosen=replace(found.chosen, ratio=0.58), reach_km=None)

    return change


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lost(Limit.DECODE_RETURN), ["8.0 ms of prefill for each decode step", "9.9 ms; the cloud waits", "than 40%"]),
        (lost(Limit.CLOUD, num_groups=2), ["2 decode groups hide more", "more prefill beside the same decode"]),
        (lost(Limit.LINK), ["the link is full", "a faster link"]),
        (lost(Limit.EDGE), ["the site's engine never rests", "more devices at the site"]),
    ],
)
def test_where_every_plan_loses_it_is_said_why(found: Recommendation, change: Change, told: list[str]) -> None:
    """With the figures that decide it, and with what would help."""
    text = " ".join(advice(change(found)))
    assert "Not even a cloud at the site's door" in text
    assert [words for words in told if words not in text] == []


def test_what_is_within_the_accepted_loss_needs_no_remedy(found: Recommendation) -> None:
    """Nothing lost and little lost are different sentences; both end with how to run it."""
    little, nothing = (replace(found, chosen=replace(found.chosen, ratio=ratio)) for ratio in (0.97, 1.02))
    flags = "Run it with: --plan 2p1d --num-segments 4"
    assert advice(little) == ["At 1,000 km 2p1d loses 3.0%, within the 5% that is accepted.", flags]
    assert advice(nothing) == ["At 1,000 km 2p1d loses nothing against one place.", flags]


def test_what_is_set_while_serving_is_not_asked_for(found: Recommendation) -> None:
    chosen = replace(found.chosen, plan=PlanRequest(PlanKind.ADAPTIVE, max_steps=2))
    adaptive = replace(found, chosen=chosen)
    assert advice(adaptive)[-1] == "Run it with: --plan adaptive --max-steps 2"
    output = io.StringIO()
    print_report(adaptive, Console(file=output, width=80))
    assert "k set while serving, m 2" in output.getvalue()
    assert "set while serving; 1 x 8 cover a decode return each" in output.getvalue()


def test_a_trace_is_planned_for(options: PlanOptions) -> None:
    """From the file to the flags: every row of the table, and no row cut off."""
    text = shown(options)
    assert "trace on npu: 1,000 km, 10 Gbit/s, 8 requests" in text
    assert "Run it with: --plan " in text
    assert "…" not in text


def test_a_model_folder_is_planned_for(options: PlanOptions, tmp_path: Path) -> None:
    """Its profile comes from its config alone, for so many devices; as JSON the units are in the names."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    model = ModelOptions(tmp_path, "a100-80gb", "l40s", cloud_devices=2, edge_devices=1, split="1:2")
    values: dict[str, Any] = json.loads(shown(replace(options, model=model, is_json=True)))
    assert values["profile"].endswith("on 2 x a100-80gb")
    assert values["num_segments"] * values["segment_layers"] >= 5
    assert values["expected_loss"] == pytest.approx(1 - values["tokens_per_s"] / values["one_place_tokens_per_s"])
    assert values["ratios"].keys() == {"serial", "1p1d", "2p1d", "adaptive"}


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--load", "nothing"], "load 'nothing' is neither a file nor one of"),
        (["--load", "balanced", "--profile", "abacus"], "profile 'abacus' is neither"),
        (["--load", "balanced", "--chunk-tokens", "9999"], "chunk_tokens 9999 is over max_prefill_tokens 2048"),
        (["--load", "balanced", "--distance-km", "-1"], "distance-km"),
        (["--load", "balanced", "--distance-km", "nan"], "distance-km"),
        (["--load", "balanced", "--bandwidth-gbit", "0"], "bandwidth-gbit"),
        (["--load", "balanced", "--max-seq-len", "64"], "max_seq_len is 64"),
        (["--load", "balanced", "--plot", "picture.gif"], "a plot ends in .svg or .png"),
        (["--load", "balanced", "--plot", "no/such/folder/picture.svg"], "does not exist"),
        (["--load", "balanced", "--model", "no/such/model"], "cannot be read"),
    ],
)
def test_the_mistaken_get_one_line(flags: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything long is simulated, with exit code 2."""
    assert run(["plan", *flags]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert len(error.splitlines()) == 1


def test_an_unknown_accelerator_is_refused(options: PlanOptions, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    model = ModelOptions(tmp_path, "abacus", None, cloud_devices=1, edge_devices=1, split="1:1")
    with pytest.raises(InvalidRequestError, match="hardware 'abacus'"):
        shown(replace(options, model=model))


@pytest.mark.parametrize("wrong", [{"num_layers": 2}, {"token_bytes": 0}, {"edge": dict.fromkeys(TIMES, 0)}])
def test_a_profile_without_work_is_refused(options: PlanOptions, tmp_path: Path, wrong: dict[str, Any]) -> None:
    """No layer in the cloud, nothing to send, no time: each would divide by zero."""
    values = {"num_layers": 8, "head_layers": 1, "tail_layers": 1, "logits_row_us": 1, "unit_us": 1, "token_bytes": 2}
    sides = {"edge": dict.fromkeys(TIMES, 1), "cloud": dict.fromkeys(TIMES, 1)}
    path = tmp_path / "mine.yaml"
    path.write_text(json.dumps({**values, **sides, **wrong}), encoding="utf-8")
    with pytest.raises(InvalidRequestError, match="profile mine: the cloud needs at least one layer"):
        shown(replace(options, profile=str(path)))


def test_a_plot_names_the_extra_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where matplotlib is missing, the way to get it is said."""
    monkeypatch.setattr("edgeweave.cli.serve.find_spec", lambda _: None)
    with pytest.raises(InvalidSettingsError, match=r"plan --plot: not installed: matplotlib; .*edgeweave\[plot\]"):
        require_packages("plan --plot")


def curves_of() -> Curves:
    """Return lines that end close together, so that their names must be moved apart."""
    ends = {"serial": 0.30, "1p1d": 0.31, "adaptive": 0.32}
    distances_km = (0.0, 1000.0, 10_000.0)
    return Curves(
        ceiling=Curve("ceiling", distances_km, (1.1, 1.1, 0.5)),
        chosen=Curve("2p1d", distances_km, (1.0, 0.8, 0.33)),
        others=tuple(Curve(name, distances_km, (0.9, 0.7, end)) for name, end in ends.items()),
    )


def test_the_same_picture_is_the_same_file(found: Recommendation, tmp_path: Path) -> None:
    """No date and no random name, so that a picture in the docs changes only when its figures do."""
    first, second = tmp_path / "first.svg", tmp_path / "second.svg"
    for path in (first, second):
        save_plot(found, curves_of(), path)
    assert first.read_bytes() == second.read_bytes()
    assert ET.fromstring(first.read_text(encoding="utf-8")).tag.endswith("svg")  # noqa: S314 - our own file


def test_the_ending_says_what_is_written(found: Recommendation, tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    save_plot(found, curves_of(), path)
    assert path.read_bytes().startswith(b"\x89PNG")
