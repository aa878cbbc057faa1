"""Where time and bytes went, and in which order units ran: what `WatchMesh` says is what happened."""

import asyncio
from collections.abc import Iterator
from itertools import accumulate, pairwise

import pytest

from edgeweave.client.mesh_state import EngineState, MeshState
from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import Stage, Timeline, UnitRan
from fakes.real_mesh import MeshShape, RealMesh, real_mesh
from fakes.real_models import ONE_PLACE
from fakes.watched import WatchedDriver
from integration.mesh.clients import answers, check_empty
from models.tiny import references, tiny_model

EXPECTED = references("llama")
PLANS = {"serial": 1, "1p1d": 1, "2p1d": 2}
"""Names, and the most chunks in flight."""
NUM_ROUNDS = 3


async def _settled(mesh: RealMesh) -> MeshState:
    """Return the state once both engines have reported again after all work was done."""
    await check_empty(mesh)
    seen = {side: len(mesh.driver.timelines[side]) for side in mesh.sides}
    await mesh.notice.until(lambda: all(len(mesh.driver.timelines[side]) > seen[side] for side in mesh.sides))
    return await mesh.state()


def _ran(driver: WatchedDriver, side: Side) -> list[UnitRan]:
    return [ran for timeline in driver.timelines[side] for ran in timeline.ran]


def _check_time(timelines: list[Timeline]) -> None:
    """Busy + bubbles + idle make up the time between the first and the last report."""
    first, *others = timelines
    wall_us = others[-1].clock_us - first.clock_us
    assert any(timeline.ran for timeline in others)
    assert abs(sum(map(_length_us, others)) - wall_us) <= wall_us / 1000


def _length_us(timeline: Timeline) -> int:
    busy_us = sum(ran.end_us - ran.begin_us for ran in timeline.ran)
    return busy_us + sum(bubble.end_us - bubble.begin_us for bubble in timeline.bubbles) + timeline.idle_us


def _engines(state: MeshState) -> Iterator[EngineState]:
    for engine in (state.edge, state.cloud):
        if engine is not None:
            yield engine


@pytest.mark.parametrize("split", ["1:1", ONE_PLACE])
async def test_every_microsecond_row_byte_and_block_is_accounted_for(split: str) -> None:
    """Nothing is skipped without an abort, replay and engines agree, all blocks come back, times and bytes add up."""
    shape = MeshShape(tiny_model("llama"), split=split, frame_bytes=384, scheduler={"chunk_tokens": 5})
    async with real_mesh(shape) as mesh:
        await mesh.notice.until(lambda: all(mesh.driver.timelines[side] for side in mesh.sides))
        for _ in range(NUM_ROUNDS):
            await answers(mesh, EXPECTED)
        state = await _settled(mesh)
        assert (state.num_departures, state.num_preemptions) == (0, 0)
        for engine in _engines(state):
            assert engine.num_skipped_rows == 0
            assert engine.num_free_blocks == engine.num_blocks
            assert sum(unit.num_units for unit in engine.units.values()) == engine.num_units
            assert sum(unit.total_us for unit in engine.units.values()) == engine.busy_us
        for side, engine in zip(mesh.sides, _engines(state), strict=True):
            _check_time(mesh.driver.timelines[side])
            told_us = engine.busy_us + sum(engine.bubbles_us.values()) + engine.idle_us
            assert told_us in accumulate(map(_length_us, mesh.driver.timelines[side]))
        assert 0 <= state.hidden_share <= 1
        assert state.num_output_tokens == NUM_ROUNDS * sum(len(r.output) for r in EXPECTED)
        num_tokens = NUM_ROUNDS * sum(len(r.prompt) + len(r.output) - 1 for r in EXPECTED)
        moved = {n for e in _engines(state) for n in (e.sent_bytes, e.received_bytes)}
        assert moved == {0 if split == ONE_PLACE else num_tokens * mesh.edge.model.token_bytes}


@pytest.mark.parametrize("plan", PLANS)
async def test_units_run_in_the_order_that_the_plan_says(plan: str) -> None:
    """The order of units at both engines equals the replay; chunks and steps pass each stage in order, each once."""
    shape = MeshShape(tiny_model("llama"), piece_tokens=4, scheduler={"plan": plan, "chunk_tokens": 5})
    async with real_mesh(shape) as mesh:
        await asyncio.gather(*(answers(mesh, EXPECTED) for _ in range(2)))
        state = await _settled(mesh)
        edge, cloud = _ran(mesh.driver, Side.EDGE), _ran(mesh.driver, Side.CLOUD)
    assert state.num_departures == 0
    assert (state.num_chunks_done > 1, state.num_steps_done > 1) == (True, True)
    for stage in (Stage.HEAD, Stage.SEGMENT, Stage.TAIL):
        chunks = [(ran.chunk, ran.start) for ran in [*edge, *cloud] if ran.stage is stage]
        assert chunks == sorted(set(chunks), key=lambda unit: (unit[0] or 0, unit[1]))
        assert {chunk for chunk, _ in chunks} == set(range(1, state.num_chunks_done + 1))
    steps = [ran.step for ran in cloud if ran.stage is Stage.STEP]
    assert steps == list(range(1, state.num_steps_done + 1))
    assert max(_chunks_away(edge)) == PLANS[plan]
    if plan == "serial":
        _check_one_away(edge, cloud)


def _chunks_away(edge: list[UnitRan]) -> Iterator[int]:
    """Yield, for each unit of the edge, how many chunks are between their first head and their last tail."""
    away: set[int | None] = set()
    num_rows = {ran.chunk: ran.stop for ran in edge if ran.stage is Stage.HEAD}
    for ran in edge:
        if ran.stage is Stage.HEAD:
            away.add(ran.chunk)
        yield len(away)
        if ran.stage is Stage.TAIL and ran.stop == num_rows[ran.chunk]:
            away.remove(ran.chunk)


def _check_one_away(edge: list[UnitRan], cloud: list[UnitRan]) -> None:
    """At most one chunk or step is between its head and its tail: what runs anywhere is that one."""
    order = sorted([*edge, *cloud], key=lambda ran: ran.begin_us)
    for before, after in pairwise(order):
        assert before.end_us <= after.begin_us, f"{before} and {after} overlap"
    num_rows = {ran.chunk: ran.stop for ran in edge if ran.stage is Stage.HEAD}
    away: tuple[int | None, int | None] | None = None
    for index, ran in enumerate(order):
        if away is None and ran.stage is Stage.STEP:
            # The turnaround before it brought one step home and sent off this one.
            before = order[index - 1]
            assert (before.stage, before.step) == (Stage.TURNAROUND, (ran.step or 0) - 1)
        elif away is None:
            assert ran.stage in {Stage.HEAD, Stage.TURNAROUND}
        else:
            assert (ran.chunk, ran.step) == away, f"{ran} runs while {away} is away"
        is_last_tail = ran.stage is Stage.TAIL and ran.stop == num_rows[ran.chunk]
        is_step_home = ran.stage is Stage.TURNAROUND and away is not None
        away = None if is_last_tail or is_step_home else (ran.chunk, ran.step)
