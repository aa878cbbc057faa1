"""The command line of the bench.

Knows options and their defaults. Does not measure.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weaving.loads import TRACE
from weaving.places import Place
from weaving.variants import SPLIT

ENGINES = ("emulated", "real", "embedded")
LOADS = ("A", "B", "prefill", "decode", "C")
DISTANCES_KM = (0.0, 500.0, 1000.0, 3000.0, 10_000.0)
EMBEDDED_DISTANCES_KM = (0.0, 1000.0, 3000.0)
TLS_DISTANCE_KM = 1000.0
QUICK_REQUESTS = 12
_UNSHOWN = ("--json", "--out", "--cache", "--trace")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the bench is asked for; `shown` is the command as a page may show it: without files of this machine."""

    engines: tuple[str, ...]
    loads: tuple[str, ...]
    distances_km: tuple[float, ...]
    plans: tuple[str, ...]
    num_pairs: int
    is_quick: bool
    with_tls: bool
    json_file: Path | None
    out: Path
    cache: Path
    trace: Path
    shown: str

    @property
    def places(self) -> tuple[Place, ...]:
        """Where the split is measured."""
        behind_tls = (Place(TLS_DISTANCE_KM, has_tls=True),) if self.with_tls else ()
        return (*(Place(distance_km) for distance_km in self.distances_km), *behind_tls)


def parse(argv: Sequence[str]) -> Wanted:
    """Read the command line; end with exit code 2 where it is wrong."""
    given = _parser().parse_args(argv)
    return Wanted(
        engines=tuple(given.engines),
        loads=tuple(given.loads),
        distances_km=tuple(given.km),
        plans=tuple(given.plans),
        num_pairs=given.pairs,
        is_quick=given.quick,
        with_tls=given.tls,
        json_file=given.json,
        out=given.out,
        cache=given.cache,
        trace=given.trace,
        shown=" ".join(["bench/weave.py", *_shown(argv)]),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench/weave.py", description="Measures the split against the same model in one place."
    )
    for flag, names, default in (
        ("--engines", ENGINES, ENGINES[:1]),
        ("--loads", LOADS, LOADS),
        ("--plans", tuple(SPLIT), tuple(SPLIT)),
    ):
        shown = f"{', '.join(names)} [{'all' if default == names else default[0]}]"
        parser.add_argument(flag, nargs="+", choices=names, default=list(default), metavar="NAME", help=shown)
    parser.add_argument(
        "--km", nargs="+", type=_distance, default=list(DISTANCES_KM), metavar="KM", help="fibre between site and cloud"
    )
    parser.add_argument("--pairs", type=_count, default=5, help="rounds of engines that compute [5]")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_REQUESTS} requests a load: a try, not a figure")
    parser.add_argument("--tls", action="store_true", help="one place more: 1,000 km with mutual TLS")
    parser.add_argument("--json", type=Path, help="file for all figures")
    parser.add_argument("--out", type=Path, default=Path("docs/results"), help="folder of tables and plots")
    parser.add_argument("--cache", type=Path, default=Path(".cache"), help="folder of models and references")
    parser.add_argument("--trace", type=Path, default=TRACE, help="trace that load C takes its lengths from")
    return parser


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
