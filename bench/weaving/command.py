"""The command line of the bench.

Knows options and their defaults. Does not measure.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weaving.loads import TRACE
from weaving.suites import DISTANCES_KM, ENGINES, LOADS, PLANS, SUITES, Part

QUICK_REQUESTS = 12
_UNSHOWN = ("--json", "--out", "--cache", "--trace")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the bench is asked for; `shown` is the command as a page may show it: without files of this machine."""

    parts: tuple[Part, ...]
    num_pairs: int
    num_repeats: int
    is_quick: bool
    json_file: Path | None
    out: Path
    cache: Path
    trace: Path
    shown: str


def parse(argv: Sequence[str]) -> Wanted:
    """Read the command line; end with exit code 2 where it is wrong."""
    parser = _parser()
    given = parser.parse_args(argv)
    chosen = (given.engines, given.loads, given.km, given.plans, given.tls or None)
    if given.suite is not None and any(choice is not None for choice in chosen):
        parser.error(f"--suite {given.suite} says what is measured; leave out --engines, --loads, --km, --plans, --tls")
    return Wanted(
        parts=SUITES[given.suite] if given.suite is not None else _parts(given),
        num_pairs=given.pairs,
        num_repeats=given.repeats,
        is_quick=given.quick,
        json_file=given.json,
        out=given.out,
        cache=given.cache,
        trace=given.trace,
        shown=" ".join(["bench/weave.py", *_shown(argv)]),
    )


def _parts(given: argparse.Namespace) -> tuple[Part, ...]:
    return tuple(
        Part(
            engines,
            tuple(given.loads or LOADS),
            DISTANCES_KM if given.km is None else tuple(given.km),
            tuple(given.plans or PLANS),
            with_tls=given.tls,
        )
        for engines in given.engines or ENGINES[:1]
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench/weave.py", description="Measures the split against the same model in one place."
    )
    parser.add_argument("--suite", choices=SUITES, metavar="NAME", help=f"{', '.join(SUITES)}: what `make` measures")
    _add_names(parser, "--engines", ENGINES, default=ENGINES[0])
    _add_names(parser, "--loads", LOADS, default="all")
    _add_names(parser, "--plans", PLANS, default="all")
    distances = " ".join(f"{distance_km:.0f}" for distance_km in DISTANCES_KM)
    parser.add_argument("--km", nargs="+", type=_distance, metavar="KM", help=f"fibre to the cloud [{distances}]")
    parser.add_argument("--tls", action="store_true", help="one place more: 1,000 km with mutual TLS")
    parser.add_argument("--pairs", type=_count, default=5, help="rounds of engines that compute [5]")
    parser.add_argument("--repeats", type=_count, default=1, help="rounds of emulated engines, on a noisy machine [1]")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_REQUESTS} requests a load: a try, not a figure")
    parser.add_argument("--json", type=Path, help="file for all figures")
    parser.add_argument("--out", type=Path, default=Path("docs/results"), help="folder of tables and plots")
    parser.add_argument("--cache", type=Path, default=Path(".cache"), help="folder of models and references")
    parser.add_argument("--trace", type=Path, default=TRACE, help="trace that load C takes its lengths from")
    return parser


def _add_names(parser: argparse.ArgumentParser, flag: str, names: Sequence[str], *, default: str) -> None:
    parser.add_argument(flag, nargs="+", choices=names, metavar="NAME", help=f"{', '.join(names)} [{default}]")


def _distance(text: str) -> float:
    distance_km = float(text)
    if not 0 <= distance_km < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a distance; give kilometres, at least 0")
    return distance_km


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError(f"{text} is too few; give at least 1")
    return count


def _shown(argv: Sequence[str]) -> list[str]:
    """Return the words without the flags that name files, and their values."""
    words: list[str] = []
    is_value = False
    for word in argv:
        if not is_value and word not in _UNSHOWN and not word.startswith(tuple(f"{flag}=" for flag in _UNSHOWN)):
            words.append(word)
        is_value = not is_value and word in _UNSHOWN
    return words
