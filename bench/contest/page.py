"""The page of a contest as Markdown, for a file or a console.

Knows columns and how a figure is written. A column in which nothing was measured says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contest.breakdown import Part
from contest.engines import Engine
from contest.results import RATIOS, ModelResults
from contest.rounds import Measured
from weaving.ratios import Ratio

_WEIGHT_BYTES = {Engine.OURS: 4, Engine.OURS_BF16: 2}
_SPEEDS = (
    "Tokens a second: of decoding, those after the first of each output, by the time from the last first token on; of "
    "a prefill, those of the prompt, by the time to the first token."
)
_METHOD = (
    "How steps were taken apart: operators have the time that `torch.profiler` tells, each without what it calls. The "
    "profiler takes time itself: what steps under it took longer than steps before and after them is spread evenly "
    "over its records, and taken off the operator in which a record was written. What is then left of a step without "
    "the profiler is Python: the interpreter, and the way into an operator. Attention is all that a layer does with "
    "its keys and values, storing them included."
)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where figures come from: the command, what of the machine matters, and how often each was taken."""

    command: str
    machine: str
    core: int
    num_rounds: int


def page_of(results: Sequence[ModelResults], engines: Sequence[Engine], origin: Origin) -> str:
    """Return the whole page."""
    how = (
        f"Written by `{origin.command}` on {origin.machine}. All on core {origin.core}, one thread each; "
        f"{origin.num_rounds} rounds of a turn for each, every other round in reverse. Medians, with the least and the "
        "most in brackets; ratios are of turns in the same round."
    )
    parts = [
        "# Engines on one core",
        how,
        *(part for each in results for part in _model_parts(each, engines)),
        *([_METHOD] if any(each.profiles for each in results) else []),
        "## Settings",
        *_settings_parts(results, engines),
    ]
    return "\n\n".join(parts) + "\n"


def _model_parts(results: ModelResults, engines: Sequence[Engine]) -> list[str]:
    model = results.model
    profiles = [part for engine, profile in results.profiles.items() for part in _profile_parts(engine, profile)]
    memory = (
        f"A step reads {model.num_read:,} weights, and one core reads {results.memory_bytes_per_s / 1e9:.1f} GB/s "
        "(a sum of a large buffer by torch, in the same rounds), so a step takes at least:"
    )
    return [
        f"## {model.name}: {model.num_parameters:,} parameters",
        _SPEEDS,
        speed_table(results, engines),
        "How many times faster:",
        ratio_table(results, engines),
        "Outputs that are those of `generate` for each prompt alone, in the worst turn:",
        _verdict_table(results, engines),
        memory,
        limit_table(results),
        *profiles,
    ]


def speed_table(results: ModelResults, engines: Sequence[Engine]) -> str:
    """Return tokens a second of each case and engine."""
    rows = [[str(each.speeds.case), *(_speed(each, engine) for engine in engines)] for each in results.measured]
    return markdown_table(["", *engines], rows)


def ratio_table(results: ModelResults, engines: Sequence[Engine]) -> str:
    """Return the ratios of each case, of engines that were asked for."""
    pairs = [(ours, theirs) for ours, theirs in RATIOS if {ours, theirs} <= set(engines)]
    rows = [
        [str(each.speeds.case), *(_ratio(each.speeds.ratio(ours, theirs)) for ours, theirs in pairs)]
        for each in results.measured
    ]
    return markdown_table(["", *(f"{ours} / {theirs}" for ours, theirs in pairs)], rows)


def limit_table(results: ModelResults) -> str:
    """Return how long a decode step of ours takes beside how long its weights take to be read."""
    rows = []
    for each in results.measured:
        for engine, weight_bytes in _WEIGHT_BYTES.items():
            step_s = each.speeds.step_s(engine)
            if step_s is None or not each.speeds.case.is_decode:
                continue
            limit_s = results.model.num_read * weight_bytes / results.memory_bytes_per_s
            times = [f"{limit_s * 1e3:.2f}", f"{step_s * 1e3:.2f}", f"{step_s / limit_s:.2f}"]
            rows.append([str(each.speeds.case), engine, *times])
    return markdown_table(["", "engine", "weights, ms", "step, ms", "step / weights"], rows)


def _verdict_table(results: ModelResults, engines: Sequence[Engine]) -> str:
    rows = [
        [str(each.speeds.case), *(str(each.verdicts.get(engine, "not installed")) for engine in engines)]
        for each in results.measured
    ]
    return markdown_table(["", *engines], rows)


def _profile_parts(engine: Engine, profile: Mapping[str, Any]) -> list[str]:
    step_us = profile["step_us"]
    parts = [
        [part.value, f"{profile['parts_us'][part.value] / 1e3:.2f}", f"{profile['parts_us'][part.value] / step_us:.0%}"]
        for part in Part
    ]
    ops = [[f"`{op['name']}`", op["part"], f"{op['num_calls']:.0f}", f"{op['self_us']:.0f}"] for op in profile["ops"]]
    return [
        f"### A decode step of {engine} at batch {profile['batch']}: {step_us / 1e3:.2f} ms",
        markdown_table(["", "ms", "share"], parts),
        f"A record of the profiler took {profile['record_us']:.2f} µs. The operators with the most time:",
        markdown_table(["operator", "part of", "calls", "µs"], ops),
    ]


def _settings_parts(results: Sequence[ModelResults], engines: Sequence[Engine]) -> list[str]:
    """Return the settings of each engine; those of all models where they are the same."""
    lines = []
    for engine in engines:
        by_model = {each.model.name: _words(each.settings[engine]) for each in results if engine in each.settings}
        if len(set(by_model.values())) == 1:
            lines.append(f"- **{engine}**: {next(iter(by_model.values()))}")
        else:
            lines += [f"- **{engine}**, {model}: {words}" for model, words in by_model.items()]
        if not by_model:
            lines.append(f"- **{engine}**: not installed")
    return ["\n".join(lines)]


def _words(settings: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())


def markdown_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose columns are aligned, so that it reads well as it is."""
    widths = [max(len(row[index]) for row in (titles, *rows)) for index in range(len(titles))]
    rule = ["-" * max(3, width) for width in widths]
    return "\n".join(_line(row, widths) for row in (titles, rule, *rows))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return f"| {' | '.join(cell.ljust(max(3, width)) for cell, width in zip(cells, widths, strict=True))} |"


def _speed(measured: Measured, engine: Engine) -> str:
    spread = measured.speeds.spread(engine)
    if spread is None:
        return "no figure" if engine in measured.verdicts else "not installed"
    return f"{spread.median:,.1f} ({spread.least:,.1f}-{spread.most:,.1f})"


def _ratio(ratio: Ratio | None) -> str:
    return "" if ratio is None else str(ratio)
