"""Rows of a step that ride in a chunk: real engines run them in one pass, and say what the whole model says."""

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest

from edgeweave.errors import UnitFailedError
from edgeweave.interleave.nouns import Fuse, PlanKind, Row, Stage
from exact.tally import Tally
from fakes.real_mesh import MeshShape, RealMesh, real_mesh
from fakes.real_models import ONE_PLACE
from integration.mesh.clients import answers, arrived, check_empty, check_exact
from models.tiny import references, tiny_model

EXPECTED = [reference for reference in references("llama") if len(reference.prompt) > 1]
SCHEDULER = {"plan": "adaptive", "fuse": "always", "max_prefills": 3, "max_prefill_batch_size": 1, "chunk_tokens": 2}
SPLITS = ["1:1", ONE_PLACE]
FUSED = {"1:1": Stage.FUSED_SEGMENT, ONE_PLACE: Stage.FUSED_HEAD}
TOLD = {
    "1:1": "(segment of chunk|step of step) .* in the cloud engine",
    ONE_PLACE: "fused head of .* in the edge engine",
}


def shape(split: str, **scheduler: object) -> MeshShape:
    """A mesh in which prompts are many chunks, so that steps find one to ride in."""
    return MeshShape(tiny_model("llama"), split=split, piece_tokens=128, scheduler=SCHEDULER | scheduler)


def is_fused(rows: Sequence[Row]) -> bool:
    """Whether a unit has rows of a step and of a prompt; no prompt here is cut to its last token alone."""
    return len({row.num_tokens == 1 and row.start > 1 for row in rows}) > 1


async def units_of(mesh: RealMesh) -> Counter[Stage]:
    """How many units of each stage the engine with the body ran."""
    await mesh.driver.idle()
    state = await mesh.state(lambda state: state.edge is not None)
    engine = state.cloud or state.edge
    assert engine is not None
    units = Counter[Stage]()
    for (stage, _), unit in engine.units.items():
        units[stage] += unit.num_units
    return units


@pytest.mark.parametrize("split", SPLITS)
async def test_what_rides_is_exact_and_is_told_as_what_it_was(split: str, tally: Tally) -> None:
    """Greedy tokens equal those of `generate`, fused units ran, and the replay agrees with every choice."""
    async with real_mesh(shape(split)) as mesh:
        for _ in range(3):
            for output, reference in zip(await answers(mesh, EXPECTED), EXPECTED, strict=True):
                check_exact(output, reference, tally)
        await check_empty(mesh)
        assert (await units_of(mesh))[FUSED[split]] > 0
        assert (await mesh.state()).num_departures == 0


@pytest.mark.parametrize("split", SPLITS)
async def test_no_unit_is_fused_where_an_operator_says_never(split: str, tally: Tally) -> None:
    """From the next plan on each unit is of one kind again; nothing has to be drained for that."""
    async with real_mesh(shape(split)) as mesh:
        plan = await mesh.client.set_plan(PlanKind.TWO_P_ONE_D, fuse=Fuse.NEVER)
        assert not plan.may_fuse
        for output, reference in zip(await answers(mesh, EXPECTED), EXPECTED, strict=True):
            check_exact(output, reference, tally)
        assert (await units_of(mesh))[FUSED[split]] == 0
        assert (await mesh.client.set_plan(PlanKind.TWO_P_ONE_D, fuse=Fuse.ALWAYS)).may_fuse


@pytest.mark.parametrize("split", SPLITS)
async def test_a_fused_unit_that_fails_takes_its_chunk_and_its_step_and_nothing_else(split: str, tally: Tally) -> None:
    """The clients of both are told stage and engine; all others are answered, and so is all that comes later."""
    async with real_mesh(shape(split)) as mesh:
        session = mesh.keeper.number
        model = mesh.edge.model if mesh.cloud is None else mesh.cloud.model
        fault = model.faults.arm("head" if mesh.cloud is None else "body", is_fused)
        mesh.edge.model.faults.hold()
        asked = [await arrived(mesh, mesh.answer(each.prompt, max_tokens=len(each.output))) for each in EXPECTED]
        mesh.edge.model.faults.let_go()
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        assert fault.rows is not None
        failed = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        assert len(failed) == len(fault.rows) >= 2
        for outcome, reference in zip(outcomes, EXPECTED, strict=True):
            if isinstance(outcome, list):
                check_exact(outcome, reference, tally)
        for error in failed:
            with pytest.raises(UnitFailedError, match=TOLD[split]):
                raise error
        await check_empty(mesh)
        for output, reference in zip(await answers(mesh, EXPECTED), EXPECTED, strict=True):
            check_exact(output, reference, tally)
        assert mesh.keeper.number == session
