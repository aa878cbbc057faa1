"""The page of a contest, as text."""

from dataclasses import replace
from pathlib import Path

from contest.cases import Case
from contest.engines import Engine
from contest.models import Model
from contest.page import Origin, markdown_table, page_of, speed_table
from contest.results import ModelResults
from contest.rounds import Measured
from contest.speeds import Speeds
from contest.verdicts import Verdict
from weaving.reference_cache import ReferenceCache

MODEL = Model("tiny", Path("tiny"), 100, 1_200_000, 1_000_000, ReferenceCache(Path("tiny"), Path("references")))
ENGINES = (Engine.OURS, Engine.GENERATE, Engine.VLLM)
PROFILE = {
    "batch": 8,
    "step_us": 2000.0,
    "record_us": 0.5,
    "parts_us": {"linear layers": 1000.0, "attention": 500.0, "other operators": 300.0, "Python": 200.0},
    "ops": [{"name": "aten::addmm", "part": "linear layers", "num_calls": 64.0, "self_us": 998.4}],
}
PAGE = """\
# Engines on one core

Written by `bench/engine.py --rounds 2` on 2 cores. All on core 1, one thread each; 2 rounds of a turn for each, every \
other round in reverse. Medians, with the least and the most in brackets; ratios are of turns in the same round.

## tiny: 1,200,000 parameters

Tokens a second: of decoding, those after the first of each output, by the time from the last first token on; of a \
prefill, those of the prompt, by the time to the first token.

|                 | ours                      | generate                  | vllm          |
| --------------- | ------------------------- | ------------------------- | ------------- |
| decode, batch 8 | 3,000.0 (2,000.0-4,000.0) | 1,500.0 (1,000.0-2,000.0) | not installed |

How many times faster:

|                 | ours / generate  | ours / vllm |
| --------------- | ---------------- | ----------- |
| decode, batch 8 | 2.00 (2.00-2.00) |             |

Outputs that are those of `generate` for each prompt alone, in the worst turn:

|                 | ours   | generate | vllm          |
| --------------- | ------ | -------- | ------------- |
| decode, batch 8 | 8 of 8 | 7 of 8   | not installed |

A step reads 1,000,000 weights, and one core reads 4.0 GB/s (a sum of a large buffer by torch, in the same rounds), so \
a step takes at least:

|                 | engine | weights, ms | step, ms | step / weights |
| --------------- | ------ | ----------- | -------- | -------------- |
| decode, batch 8 | ours   | 1.00        | 2.67     | 2.67           |

### A decode step of ours at batch 8: 2.00 ms

|                 | ms   | share |
| --------------- | ---- | ----- |
| linear layers   | 1.00 | 50%   |
| attention       | 0.50 | 25%   |
| other operators | 0.30 | 15%   |
| Python          | 0.20 | 10%   |
"""


def _results() -> ModelResults:
    measured = Measured(Speeds(Case(8, 128, 64)), [3e9, 5e9])
    for number, (ours, generate) in enumerate([(2000.0, 1000.0), (4000.0, 2000.0)]):
        measured.speeds.add(Engine.OURS, ours, number=number)
        measured.speeds.add(Engine.GENERATE, generate, number=number)
    measured.verdicts = {Engine.OURS: Verdict(8, 8), Engine.GENERATE: Verdict(7, 8)}
    settings = {Engine.OURS: {"dtype": "float32"}, Engine.GENERATE: {"dtype": "float32", "attention": "sdpa"}}
    return ModelResults(MODEL, settings, [measured], {Engine.OURS: PROFILE})


def test_a_page_is_golden() -> None:
    page = page_of([_results()], ENGINES, Origin("bench/engine.py --rounds 2", "2 cores", 1, 2))
    assert page.startswith(PAGE)
    assert "A record of the profiler took 0.50 µs." in page
    assert page.count("How steps were taken apart:") == 1
    assert "| `aten::addmm` | linear layers | 64    | 998 |" in page
    settings = ["ours**: dtype float32", "generate**: dtype float32, attention sdpa", "vllm**: not installed"]
    assert page.endswith("## Settings\n\n" + "".join(f"- **{words}\n" for words in settings))


def test_an_engine_that_noise_left_no_figure_is_not_called_missing() -> None:
    results = _results()
    results.measured[0].verdicts[Engine.VLLM] = Verdict(8, 8)
    assert speed_table(results, [Engine.VLLM]).endswith("| decode, batch 8 | no figure |")


def test_without_a_profile_nothing_is_said_of_it() -> None:
    results = replace(_results(), profiles={})
    assert "profiler" not in page_of([results], ENGINES, Origin("bench/engine.py", "2 cores", 1, 2))


def test_settings_that_differ_by_model_are_told_for_each() -> None:
    other = ModelResults(
        Model("large", Path("large"), 100, 2, 2, MODEL.references),
        {Engine.OURS: {"dtype": "bfloat16"}},
        _results().measured,
        {},
    )
    page = page_of([_results(), other], [Engine.OURS], Origin("bench/engine.py", "2 cores", 1, 2))
    assert "- **ours**, tiny: dtype float32\n- **ours**, large: dtype bfloat16\n" in page


def test_a_column_is_as_wide_as_its_widest_cell() -> None:
    assert markdown_table(["", "long title"], [["a", "b"], ["longer", "c"]]) == (
        "|        | long title |\n| ------ | ---------- |\n| a      | b          |\n| longer | c          |"
    )
