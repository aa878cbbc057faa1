"""The load of the simulator's speed measurement, and its command line."""

from pathlib import Path

import pytest

from edgeweave.sim.load import Arrival, Load
from sim_speed import HOUR_S, NUM_REQUESTS, OUTPUTS, PROMPTS, drawn_load, main, thinned


def test_the_drawn_hour_has_the_mean_lengths_and_lasts_an_hour() -> None:
    load = drawn_load(NUM_REQUESTS)
    prompts = [arrival.num_prompt_tokens for arrival in load.arrivals]
    outputs = [arrival.num_output_tokens for arrival in load.arrivals]
    assert sum(prompts) / NUM_REQUESTS == pytest.approx(PROMPTS.mean, rel=0.03)
    assert sum(outputs) / NUM_REQUESTS == pytest.approx(OUTPUTS.mean, rel=0.03)
    assert load.arrivals[-1].at_us / 1e6 == pytest.approx(HOUR_S, rel=0.03)
    assert max(prompts) <= PROMPTS.longest
    assert min(outputs) >= 1


def test_a_seed_draws_the_same_hour_each_time() -> None:
    assert drawn_load(100) == drawn_load(100)
    assert drawn_load(100) != drawn_load(100, seed=8)


def test_a_thinned_trace_spans_what_the_whole_one_did() -> None:
    load = Load("ten", tuple(Arrival(at_us, 1, 1) for at_us in range(10)))
    assert [arrival.at_us for arrival in thinned(load, 5).arrivals] == [0, 2, 4, 6, 8]
    assert thinned(load, 20) == load


def test_the_report_names_load_and_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--requests", "5"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("drawn: 5 requests, ")
    assert "CPU s" in printed


def test_more_time_than_allowed_is_a_failure() -> None:
    assert main(["--requests", "5", "--within-s", "0"]) == 1


def test_a_file_that_is_no_trace_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--trace", str(tmp_path / "hour.txt")]) == 2
    assert "hour.txt" in capsys.readouterr().err
