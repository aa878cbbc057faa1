"""What a scrape of each service of a real mesh says is what the mesh did."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import httpx
import pytest
from prometheus_client.registry import Collector

from edgeweave.client.mesh_state import EngineState, MeshState
from edgeweave.interleave.nouns import Stage
from edgeweave.metrics import EngineCollector, SchedulerCollector, metrics_served
from fakes.metered import Scraped
from fakes.real_mesh import MeshShape, RealMesh, real_mesh
from fakes.real_models import ONE_PLACE
from integration.mesh.clients import TIGHT_KV, Leaver, answers, check_empty, in_tight_order
from models.tiny import references, tiny_model

EXPECTED = references("llama")
NUM_ROUNDS = 2
KIND_OF_CAUSE = {"await_decode_hidden": "decode", "await_prefill_hidden": "prefill", "lost": "none"}


@dataclass(frozen=True)
class Ports:
    """Where the services of a mesh tell their metrics."""

    of: Mapping[str, int | None]

    async def scrape(self, service: str) -> Scraped:
        """Return what a service tells now."""
        async with httpx.AsyncClient() as http:
            return Scraped((await http.get(f"http://127.0.0.1:{self.of[service]}/metrics")).text)


@asynccontextmanager
async def metered(mesh: RealMesh) -> AsyncIterator[Ports]:
    """Serve the metrics of all services of a mesh, as their `__main__` does."""
    collectors: dict[str, Collector] = {
        "scheduler": SchedulerCollector(mesh.driver.meter, state=lambda: mesh.keeper.state),
        "edge": EngineCollector("edge", mesh.edge.servicer.meter),
    }
    if mesh.cloud is not None:
        collectors["cloud"] = EngineCollector("cloud", mesh.cloud.servicer.meter)
    async with AsyncExitStack() as stack:
        served = {
            service: await stack.enter_async_context(metrics_served("127.0.0.1:0", service, collector))
            for service, collector in collectors.items()
        }
        yield Ports(served)


async def settled(mesh: RealMesh) -> MeshState:
    """Return the state when all that was done has been reported."""
    await check_empty(mesh)
    seen = {side: len(mesh.driver.timelines[side]) for side in mesh.sides}
    await mesh.notice.until(lambda: all(len(mesh.driver.timelines[side]) > seen[side] for side in mesh.sides))
    return await mesh.state()


def check_engine(told: Scraped, engine: str, state: EngineState, *, prefix: str = "edgeweave:") -> None:
    """Times, units and bubbles by cause are those that `WatchMesh` tells."""
    assert told.value(f"{prefix}busy_seconds_total", engine=engine) * 1e6 == pytest.approx(state.busy_us)
    for cause, total_us in state.bubbles_us.items():
        told_us = told.sum(f"{prefix}bubble_seconds_total", engine=engine, cause=cause.name.lower()) * 1e6
        assert told_us == pytest.approx(total_us), cause
    assert told.sum(f"{prefix}bubble_seconds_total", engine=engine) * 1e6 == pytest.approx(
        sum(state.bubbles_us.values())
    )
    for stage in {stage for stage, _ in state.units}:
        num_units = sum(units.num_units for (each, _), units in state.units.items() if each is stage)
        labels = {"engine": engine, "stage": stage.name.lower()}
        assert told.value(f"{prefix}unit_time_seconds_count", **labels) == num_units
    for (name, pairs), value in told.samples.items():
        given = dict(pairs)
        if name == f"{prefix}bubble_seconds_total" and value:
            assert given["kind"] == KIND_OF_CAUSE.get(given["cause"], given["kind"])
            assert given["kind"] != "none" or given["cause"] in {"await_task", "lost"}


async def test_a_scrape_after_real_requests_shows_what_was_done() -> None:
    """Requests, tokens, units, bubbles, bytes: those of the clients, of `WatchMesh`, and of the engines themselves."""
    shape = MeshShape(tiny_model("llama"), frame_bytes=384, scheduler={"chunk_tokens": 5, "plan": "2p1d"})
    async with real_mesh(shape) as mesh, metered(mesh) as ports:
        for _ in range(NUM_ROUNDS):
            await answers(mesh, EXPECTED)
        state = await settled(mesh)
        told = await ports.scrape("scheduler")
        assert state.edge is not None
        assert state.cloud is not None
        engines = {"edge": state.edge, "cloud": state.cloud}
        for name, engine in engines.items():
            check_engine(told, name, engine)
            check_engine(await ports.scrape(name), name, engine, prefix="edgeweave:engine_")
        check_requests(told)
        assert told.value("edgeweave:chunk_away_seconds_count") == state.num_chunks_done
        assert told.value("edgeweave:step_away_seconds_count") == state.num_steps_done
        outside_s = told.value("edgeweave:away_seconds_total") - told.value("edgeweave:inside_seconds_total")
        assert outside_s * 1e6 == pytest.approx(state.outside_us)
        assert told.value("edgeweave:hidden_share") == pytest.approx(state.hidden_share)
        assert told.value("edgeweave:round_trip_seconds") * 1e6 == pytest.approx(state.rtt_us)
        rows = told.value("edgeweave:step_rows_sum", engine="cloud")
        assert rows == sum(
            num * units.num_units for (stage, num), units in state.cloud.units.items() if stage is Stage.STEP
        )
        await check_bytes(ports, told, state)


def check_requests(told: Scraped) -> None:
    """Each request, each of its tokens and each interval between two of them once."""
    num_requests = NUM_ROUNDS * len(EXPECTED)
    num_tokens = NUM_ROUNDS * sum(len(each.output) for each in EXPECTED)
    assert told.value("edgeweave:num_requests_running") == told.value("edgeweave:num_requests_waiting") == 0
    assert told.sum("edgeweave:request_success_total") == num_requests
    assert told.sum("edgeweave:request_failure_total") == 0
    for name in ("time_to_first_token", "request_queue_time", "request_prefill_time", "e2e_request_latency"):
        assert told.value(f"edgeweave:{name}_seconds_count") == num_requests, name
    assert told.value("edgeweave:generation_tokens_total") == num_tokens
    assert told.value("edgeweave:inter_token_latency_seconds_count") == num_tokens - num_requests
    assert told.value("edgeweave:prompt_tokens_total") == NUM_ROUNDS * sum(len(each.prompt) for each in EXPECTED)
    whole_s = told.value("edgeweave:e2e_request_latency_seconds_sum")
    parts = ("request_queue_time", "request_prefill_time", "request_decode_time")
    assert whole_s == pytest.approx(sum(told.value(f"edgeweave:{part}_seconds_sum") for part in parts))


async def check_bytes(ports: Ports, told: Scraped, state: MeshState) -> None:
    """What one side sent on its lanes arrived at the other."""
    edge, cloud = await ports.scrape("edge"), await ports.scrape("cloud")
    assert state.cloud is not None
    assert told.value("edgeweave:hop_bytes_total", direction="up") == state.cloud.received_bytes > 0
    for sender, receiver, direction in ((edge, cloud, "up"), (cloud, edge, "down")):
        hopped = told.value("edgeweave:hop_bytes_total", direction=direction)
        assert sender.sum("edgeweave:lane_sent_bytes_total") == hopped
        assert receiver.sum("edgeweave:lane_received_bytes_total") == hopped
        for lane in ("prefill", "decode"):
            assert sender.sum("edgeweave:lane_sent_bytes_total", lane=lane) > 0
    assert edge.sum("edgeweave:lanes_opened_total") == cloud.sum("edgeweave:lanes_opened_total") == 2


async def test_preemptions_and_clients_that_leave_are_told() -> None:
    """A recompute is no second request; who left is no failure."""
    shape = MeshShape(tiny_model("llama"), edge_kv=TIGHT_KV, cloud_kv=TIGHT_KV)
    async with real_mesh(shape) as mesh, metered(mesh) as ports:
        asked = 0
        while not mesh.driver.core.num_preemptions and asked < 20 * len(EXPECTED):  # who meets whom is up to the loop
            asked += len(await answers(mesh, in_tight_order(EXPECTED)))
        assert await Leaver("left", EXPECTED[0].prompt, 16, "decoding").run(mesh)
        state = await settled(mesh)
        told = await ports.scrape("scheduler")
    assert told.value("edgeweave:num_preemptions_total") == state.num_preemptions >= 1
    assert told.value("edgeweave:time_to_first_token_seconds_count") == asked + 1
    assert told.value("edgeweave:request_success_total", finished_reason="abort") == 1
    assert told.sum("edgeweave:request_success_total") == asked + 1


async def test_counters_go_on_in_the_next_session() -> None:
    """A link that breaks ends a session, and not what was counted."""
    async with real_mesh(MeshShape(tiny_model("llama"))) as mesh, metered(mesh) as ports:
        await answers(mesh, EXPECTED[:1])
        await settled(mesh)
        before = {service: await ports.scrape(service) for service in ports.of}
        assert mesh.wires.cloud_tasks is not None
        number = mesh.keeper.number
        mesh.wires.cloud_tasks.cut()
        await mesh.ready(after=number)
        await answers(mesh, EXPECTED[:1])
        await settled(mesh)
        after = {service: await ports.scrape(service) for service in ports.of}
    told = after["scheduler"]
    assert told.value("edgeweave:sessions_total") == 2
    assert told.value("edgeweave:session_state", state="ready") == 1
    for service, scraped in before.items():
        for (name, given), value in scraped.samples.items():
            if name.endswith(("_total", "_count", "_bucket")):
                assert after[service].samples[name, given] >= value, name
    lane = {"engine": "cloud", "lane": "decode"}
    sent = [each["cloud"].value("edgeweave:lane_sent_bytes_total", **lane) for each in (before, after)]
    assert sent[1] == 2 * sent[0] > 0


async def test_without_a_cloud_the_edge_alone_is_told() -> None:
    """One engine holds all layers, and nothing crosses a link."""
    async with real_mesh(MeshShape(tiny_model("llama"), split=ONE_PLACE)) as mesh, metered(mesh) as ports:
        await answers(mesh, EXPECTED[:2])
        state = await settled(mesh)
        told, edge = await ports.scrape("scheduler"), await ports.scrape("edge")
    assert state.edge is not None
    check_engine(told, "edge", state.edge)
    assert told.labels_of("edgeweave:busy_seconds_total") == [{"engine": "edge"}]
    assert edge.sum("edgeweave:lane_sent_bytes_total") == 0
