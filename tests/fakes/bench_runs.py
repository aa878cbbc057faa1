"""Runs of the bench as a test wants them, without any mesh."""

from collections.abc import Mapping, Sequence

from edgeweave.client.engine_use import EngineUse
from edgeweave.client.mesh_state import UnitSum
from edgeweave.interleave.nouns import BubbleCause, Stage
from weaving.answers import Answer
from weaving.checks import Check
from weaving.places import ONE_PLACE, Place
from weaving.run import Key, Run
from weaving.use import MeshUse


def answer(submitted_us: int, *token_us: int, num_prompt_tokens: int = 10) -> Answer:
    """Return a request whose tokens, numbered from 0, came at `token_us`."""
    return Answer(submitted_us, num_prompt_tokens, tuple(range(len(token_us))), token_us)


def engine_use(
    units: Mapping[tuple[Stage, int], tuple[int, int]], bubbles_us: Mapping[BubbleCause, int] | None = None
) -> EngineUse:
    """Return what an engine did whose `units` by stage and rows ran so often, in so many microseconds together."""
    sums = {kind: UnitSum(*unit) for kind, unit in units.items()}
    return EngineUse(sum(unit.total_us for unit in sums.values()), dict(bubbles_us or {}), sums)


def one_place_run(
    answers: Sequence[Answer], *, variant: str = "alternate", prefill_us: int, steps: tuple[int, int], number: int = 0
) -> Run:
    """Return a run in one place; `steps` of two rows are their number and their time."""
    edge = engine_use({(Stage.HEAD, 1): (1, prefill_us), (Stage.TURNAROUND, 2): steps})
    return _run(Key("real", "A", ONE_PLACE, variant, number), answers, MeshUse(edge, None, 0, 0, steps[0], 0, 0, 0))


def fused_place_run(answers: Sequence[Answer], *, number: int = 0) -> Run:
    """Return a run in one place in which nearly all rows rode in prefill: 4.6 ms in all."""
    edge = engine_use({(Stage.HEAD, 1): (1, 100), (Stage.TURNAROUND, 2): (2, 200), (Stage.FUSED_HEAD, 2): (18, 4_300)})
    return _run(Key("real", "A", ONE_PLACE, "fused", number), answers, MeshUse(edge, None, 0, 0, 2, 0, 0, 0))


def split_run(
    answers: Sequence[Answer],
    *,
    variant: str = "adaptive",
    prefill_us: int,
    steps: tuple[int, int],
    turnarounds: tuple[int, int] = (8, 0),
    rtt_us: int = 0,
    bubbles_us: Mapping[BubbleCause, int] | None = None,
    number: int = 0,
) -> Run:
    """Return a run of the split, at 1,000 km."""
    cloud = engine_use({(Stage.SEGMENT, 1): (1, prefill_us), (Stage.STEP, 2): steps}, bubbles_us)
    edge = engine_use({(Stage.TURNAROUND, 2): turnarounds})
    key = Key("real", "A", Place(1000.0), variant, number)
    return _run(key, answers, MeshUse(edge, cloud, rtt_us, 0, steps[0], 0, 0, 0))


def _run(key: Key, answers: Sequence[Answer], use: MeshUse) -> Run:
    steps = use.body.rows(Stage.STEP if key.place.is_split else Stage.TURNAROUND)
    cpu = {"cloud": 0.8, "edge": 0.2} if key.place.is_split else {"edge": 0.9}
    return Run(key, tuple(answers), use, steps, cpu, Check(len(answers), 0, ()))
