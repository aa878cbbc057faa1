"""A unit that fails takes its own sequences with it and nothing else."""

import asyncio
from dataclasses import dataclass

import pytest

from edgeweave.errors import UnitFailedError
from exact.tally import Tally
from fakes.real_mesh import MeshShape, RealMesh, real_mesh
from fakes.real_models import ONE_PLACE, Faults, is_chunk, is_step
from integration.mesh.clients import answers, check_empty, check_exact
from models.tiny import Reference, references, tiny_model

# Prompts of more than one token: how many tokens a row has tells a chunk from a step.
EXPECTED = [reference for reference in references("llama") if len(reference.prompt) > 1]
ROWS_OF_A_STEP = 2
SCHEDULER = {"plan": "2p1d", "max_steps": 2, "max_batch_size": ROWS_OF_A_STEP, "max_prefill_batch_size": 1}


@dataclass(frozen=True)
class Failure:
    """What fails, and how the client hears of it."""

    engine: str
    call: str
    step: bool
    told: str
    makes_nan: bool = False

    def arm(self, mesh: RealMesh) -> "Faults":
        model = mesh.edge.model if self.engine == "edge" or mesh.cloud is None else mesh.cloud.model
        model.faults.arm(self.call, is_step if self.step else is_chunk, makes_nan=self.makes_nan)
        return model.faults


FAILURES = {
    "head of a chunk": Failure("edge", "head", step=False, told="the head of chunk .* in the edge engine: compute"),
    "head of a step": Failure("edge", "head", step=True, told="the turnaround of step .* in the edge engine: compute"),
    "segment": Failure("cloud", "body", step=False, told="the segment of chunk .* in the cloud engine: compute"),
    "body of a step": Failure("cloud", "body", step=True, told="the step of step .* in the cloud engine: compute"),
    "tail of a chunk": Failure("edge", "tail", step=False, told="the tail of chunk .* in the edge engine: compute"),
    "tail of a step": Failure("edge", "tail", step=True, told="the turnaround of step .* in the edge engine: compute"),
    "logits of a chunk": Failure("edge", "tail", step=False, told="the tail of chunk .*: not finite", makes_nan=True),
    "logits of a step": Failure("edge", "tail", step=True, told="the turnaround .*: not finite", makes_nan=True),
    "hidden state": Failure("cloud", "body", step=True, told="the turnaround .*: not finite", makes_nan=True),
}


async def _check_only_the_unit_fails(mesh: RealMesh, failure: Failure, tally: Tally) -> None:
    """The requests of one unit fail; all others, and all that come later, are answered exactly."""
    faults = failure.arm(mesh)
    outcomes = await asyncio.gather(*(_outcome(mesh, reference) for reference in EXPECTED))
    assert faults.fault is not None
    assert faults.fault.rows is not None
    failed = [outcome for outcome in outcomes if isinstance(outcome, UnitFailedError)]
    assert len(failed) == len(faults.fault.rows) < len(EXPECTED)
    for outcome, reference in zip(outcomes, EXPECTED, strict=True):
        if not isinstance(outcome, UnitFailedError):
            check_exact(outcome, reference, tally)
    await check_empty(mesh)
    for output, reference in zip(await answers(mesh, EXPECTED), EXPECTED, strict=True):
        check_exact(output, reference, tally)
    for error in failed:
        assert str(error).endswith("see its log")
        with pytest.raises(UnitFailedError, match=failure.told):
            raise error


async def _outcome(mesh: RealMesh, reference: Reference) -> list[int] | UnitFailedError:
    try:
        return await mesh.answer(reference.prompt, max_tokens=len(reference.output))
    except UnitFailedError as error:
        return error


@pytest.mark.parametrize("what", FAILURES)
async def test_a_failed_unit_fails_its_sequences_only(what: str, tally: Tally) -> None:
    """The client is told stage and engine; the others go on, KV comes back, the session stays."""
    async with real_mesh(MeshShape(tiny_model("llama"), piece_tokens=128, scheduler=SCHEDULER)) as mesh:
        session = mesh.keeper.number
        await _check_only_the_unit_fails(mesh, FAILURES[what], tally)
        assert mesh.keeper.number == session


@pytest.mark.parametrize("what", ["head of a chunk", "head of a step", "logits of a step"])
async def test_a_failed_unit_where_one_engine_holds_all_layers(what: str, tally: Tally) -> None:
    """The same without a cloud."""
    async with real_mesh(
        MeshShape(tiny_model("llama"), split=ONE_PLACE, piece_tokens=128, scheduler=SCHEDULER)
    ) as mesh:
        await _check_only_the_unit_fails(mesh, FAILURES[what], tally)
