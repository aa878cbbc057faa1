"""The command line of the contest.

Knows options and their defaults. Does not measure.
"""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from contest.cases import Lengths
from contest.engines import Engine
from contest.models import BATCHES

QUICK_LENGTHS = Lengths(prompt_tokens=32, decoded_tokens=8, prefill_tokens=128)
QUICK_BATCHES = (1, 8)
QUICK_ROUNDS = 2
PROFILED_BATCH = 8


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for; `shown` is the command as a page may show it: without files of this machine."""

    models: tuple[str, ...]
    batches: tuple[int, ...] | None
    engines: tuple[Engine, ...]
    lengths: Lengths
    num_rounds: int
    core: int
    piece_tokens: int
    with_profile: bool
    vllm_python: Path | None
    json_file: Path | None
    out: Path | None
    cache: Path
    shown: str

    def batches_of(self, model: str) -> tuple[int, ...]:
        """Return the batches at which `model` decodes."""
        return self.batches or tuple(BATCHES[model])


def parse(argv: Sequence[str]) -> Wanted:
    """Read the command line; end with exit code 2 where it is wrong."""
    files = _files()
    _, shown = files.parse_known_args([word for word in argv if word not in {"-h", "--help"}])
    parser = _parser(files)
    given = parser.parse_args(argv)
    core = max(os.sched_getaffinity(0)) if given.core is None else given.core
    if core not in os.sched_getaffinity(0):
        parser.error(f"--core {core}: this process may use {sorted(os.sched_getaffinity(0))}; name one of them")
    quick = QUICK_BATCHES if given.quick else None
    return Wanted(
        models=tuple(given.models),
        batches=tuple(given.batches) if given.batches else quick,
        engines=tuple(engine for engine in Engine if engine in given.engines),
        lengths=_lengths(given),
        num_rounds=given.rounds or (QUICK_ROUNDS if given.quick else 5),
        core=core,
        piece_tokens=given.piece_tokens,
        with_profile=given.profile,
        vllm_python=given.vllm_python,
        json_file=given.json,
        out=given.out,
        cache=given.cache,
        shown=" ".join(["bench/engine.py", *shown]),
    )


def _lengths(given: argparse.Namespace) -> Lengths:
    usual = QUICK_LENGTHS if given.quick else Lengths()
    return Lengths(
        given.prompt_tokens or usual.prompt_tokens,
        given.decoded_tokens or usual.decoded_tokens,
        given.prefill_tokens or usual.prefill_tokens,
    )


def _files() -> argparse.ArgumentParser:
    """Return what reads the options that name files of this machine."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for all figures")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="folder of the page engine.md; none: no page")
    parser.add_argument(
        "--cache", type=Path, default=Path(".cache"), metavar="FOLDER", help="folder of models and references"
    )
    parser.add_argument("--vllm-python", type=Path, metavar="PATH", help="Python of an environment with vLLM")
    return parser


def _parser(files: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench/engine.py",
        description="Measures our engine in one place beside others, in turns on one core.",
        parents=[files],
        allow_abbrev=False,
    )
    models, engines, usual = list(BATCHES), [str(engine) for engine in Engine], Lengths()
    _add_names(parser, "--models", models)
    _add_names(parser, "--engines", engines)
    parser.add_argument(
        "--batches", nargs="+", type=_count, metavar="N", help="sequences that decode together [by model]"
    )
    parser.add_argument("--rounds", type=_count, metavar="N", help="turns of each engine in each case [5]")
    parser.add_argument("--core", type=int, metavar="N", help="CPU core that all share [the last]")
    _add_count(parser, "--prompt-tokens", usual.prompt_tokens, "tokens of each prompt before decoding")
    _add_count(parser, "--decoded-tokens", usual.decoded_tokens, "tokens of each output after its first")
    _add_count(parser, "--prefill-tokens", usual.prefill_tokens, "tokens of the prompt of a prefill")
    parser.add_argument(
        "--piece-tokens", type=_count, default=512, metavar="N", help="tokens of a unit of our prefill [512]"
    )
    parser.add_argument("--profile", action="store_true", help="take a decode step of ours apart")
    parser.add_argument("--quick", action="store_true", help="few rounds, short prompts: a try, not a figure")
    return parser


def _add_names(parser: argparse.ArgumentParser, flag: str, names: Sequence[str]) -> None:
    meaning = f"{', '.join(names)} [all]"
    parser.add_argument(flag, nargs="+", choices=names, default=names, metavar="NAME", help=meaning)


def _add_count(parser: argparse.ArgumentParser, flag: str, usual: int, meaning: str) -> None:
    parser.add_argument(flag, type=_count, metavar="N", help=f"{meaning} [{usual:,}]")


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError(f"{text} is too few; give at least 1")
    return count
