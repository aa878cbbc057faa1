"""An engine that is about to stop: open requests end well, no new ones begin, and then it holds nothing."""

import asyncio

import pytest

from edgeweave.errors import UnavailableError
from edgeweave.rpc.cloud_service import CLOUD_SERVICE
from edgeweave_edge.__main__ import EDGE_SERVICE
from edgeweave_scheduler.keeper import SessionState
from exact.tally import Tally
from fakes.real_mesh import MeshShape, RealMesh, real_mesh
from integration.mesh.clients import arrived, check_exact
from models.tiny import references, tiny_model

EXPECTED = references("llama")


async def _tell_stop(mesh: RealMesh, engine: str) -> None:
    """Do what an engine does first when it is told to stop."""
    if engine == "edge":
        await mesh.edge.server.set_health(EDGE_SERVICE, serving=False)
    elif mesh.cloud is not None:
        await mesh.cloud.server.set_health(CLOUD_SERVICE, serving=False)


async def _left(mesh: RealMesh, engine: str) -> None:
    """Wait as the engine does, until no session is served there."""
    servicer = mesh.edge.servicer if engine == "edge" or mesh.cloud is None else mesh.cloud.servicer
    async with asyncio.timeout(10):
        await servicer.idle()


@pytest.mark.parametrize("engine", ["edge", "cloud"])
async def test_an_engine_that_stops_is_left_in_good_order(engine: str, tally: Tally) -> None:
    """Admission ends, open requests are answered exactly, the session ends, and KV is free."""
    shape = MeshShape(tiny_model("llama"), scheduler={"connect_backoff_s": 20, "max_connect_backoff_s": 20})
    async with real_mesh(shape) as mesh:
        mesh.edge.model.faults.hold()
        answering = [await arrived(mesh, mesh.answer(r.prompt, max_tokens=len(r.output))) for r in EXPECTED]
        await _tell_stop(mesh, engine)
        await mesh.notice.until(lambda: mesh.keeper.state is SessionState.DRAINING)
        with pytest.raises(UnavailableError, match=f"no new requests are taken: the {engine} engine at .* stops"):
            await mesh.answer([5], max_tokens=1)
        mesh.edge.model.faults.let_go()
        for output, reference in zip(await asyncio.gather(*answering), EXPECTED, strict=True):
            check_exact(output, reference, tally)
        await _left(mesh, engine)
        await mesh.notice.until(lambda: mesh.keeper.state is SessionState.DOWN)
        assert [model.kv_blocks_used for model in mesh.models] == [0, 0]
        assert f"the {engine} engine at " in (mesh.keeper.reason or "")


async def test_requests_that_outlast_the_drain_are_told(tally: Tally) -> None:
    """After `drain_s` the session ends; what is still open ends with it and says why."""
    async with real_mesh(MeshShape(tiny_model("llama"), scheduler={"drain_s": 0.1})) as mesh:
        mesh.edge.model.faults.hold()
        number = mesh.keeper.number
        answering = await arrived(mesh, mesh.answer(EXPECTED[0].prompt, max_tokens=10))
        await _tell_stop(mesh, "cloud")
        with pytest.raises(UnavailableError, match=r"the cloud engine at .* stops"):
            await answering
        assert mesh.cloud is not None
        await mesh.cloud.server.set_health(CLOUD_SERVICE, serving=True)  # as one that was started again
        mesh.edge.model.faults.let_go()
        await mesh.ready(after=number)
        check_exact(await mesh.answer(EXPECTED[1].prompt, max_tokens=10), EXPECTED[1], tally)


async def test_an_engine_that_stops_before_it_is_watched_is_left_as_well() -> None:
    """The scheduler attaches first and watches then; what it sees first counts."""
    async with real_mesh(MeshShape(tiny_model("llama")), waits=False) as mesh:
        await _tell_stop(mesh, "cloud")
        await mesh.notice.until(lambda: mesh.keeper.state is SessionState.DRAINING)
        await _left(mesh, "cloud")
