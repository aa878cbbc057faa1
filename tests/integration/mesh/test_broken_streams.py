"""A session lives and dies whole: whichever of its four streams breaks, all is freed and the next one serves."""

import asyncio
from collections.abc import Callable
from time import monotonic

import pytest

from edgeweave.errors import SessionLostError
from edgeweave.interleave.requests import Attempt
from edgeweave_scheduler import keeper
from exact.tally import Tally
from fakes.real_mesh import MeshShape, RealMesh, Wires, real_mesh
from fakes.real_models import ONE_PLACE
from fakes.tcp_proxy import TcpProxy
from integration.mesh.clients import answers, check_empty, check_exact
from models.tiny import references, tiny_model

EXPECTED = references("llama")
KEEPALIVE_S = 1.0


def _cloud_tasks(wires: Wires) -> TcpProxy:
    assert wires.cloud_tasks is not None
    return wires.cloud_tasks


def _lanes(wires: Wires) -> TcpProxy:
    assert wires.lanes is not None
    return wires.lanes


CUTS: dict[str, Callable[[Wires], None]] = {
    "the task stream to the edge engine": lambda wires: wires.edge_tasks.cut(),
    "the task stream to the cloud engine": lambda wires: _cloud_tasks(wires).cut(),
    "the prefill lane": lambda wires: _lanes(wires).cut_one(0),
    "the decode lane": lambda wires: _lanes(wires).cut_one(1),
}
WIRES: dict[str, Callable[[Wires], TcpProxy]] = {
    "the task stream to the edge engine": lambda wires: wires.edge_tasks,
    "the task stream to the cloud engine": _cloud_tasks,
    "lane": _lanes,
}


async def _broken_off(mesh: RealMesh, harm: Callable[[], None]) -> list[BaseException | list[int]]:
    """Do `harm` to a mesh while some requests prefill and others decode; return what their clients got."""
    asking = asyncio.gather(*(mesh.answer(r.prompt, max_tokens=100) for r in EXPECTED * 2), return_exceptions=True)
    wanted = {Attempt.PREFILLING.value, Attempt.DECODING.value}
    requests = mesh.driver.core.requests
    await mesh.notice.until(lambda: len(requests) == 2 * len(EXPECTED))
    await mesh.notice.until(lambda: wanted <= set().union(*map(mesh.driver.states, requests)))
    mesh.edge.model.faults.hold()  # or decode, which asks nobody, might finish before the harm is noticed
    harm()
    try:
        return await asyncio.wait_for(asking, 10)
    finally:
        mesh.edge.model.faults.let_go()


async def _check_serves_again(mesh: RealMesh, *, after: int, tally: Tally) -> None:
    await mesh.ready(after=after)
    await check_empty(mesh)
    for output, reference in zip(await answers(mesh, EXPECTED), EXPECTED, strict=True):
        check_exact(output, reference, tally)
    assert (await mesh.state()).reason is None


@pytest.mark.parametrize("stream", CUTS)
async def test_a_broken_stream_ends_the_session_and_the_next_one_serves(stream: str, tally: Tally) -> None:
    """Requests end with an error that names the stream; nothing is restarted, and all KV comes back."""
    shape = MeshShape(tiny_model("llama"), scheduler={"plan": "2p1d", "chunk_tokens": 3})
    async with real_mesh(shape) as mesh:
        before = mesh.keeper.number
        for got in await _broken_off(mesh, lambda: CUTS[stream](mesh.wires)):
            assert isinstance(got, SessionLostError)
            assert stream in str(got)
            assert "see the log" not in str(got)  # that is for what nobody foresaw
            assert "\n" not in str(got)
        await _check_serves_again(mesh, after=before, tally=tally)


async def test_the_stream_that_broke_is_named_where_its_consequences_are_heard_first(
    tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cloud only knows that the edge closed its lanes; what ended the edge's session is heard later."""
    monkeypatch.setattr(keeper, "REASON_TIMEOUT_S", 5.0)
    shape = MeshShape(tiny_model("llama"), scheduler={"plan": "2p1d", "chunk_tokens": 3})
    async with real_mesh(shape) as mesh:
        before, wire = mesh.keeper.number, mesh.wires.edge_tasks

        def cut_at_the_edge() -> None:
            wire.hold_downward()
            wire.cut_server()
            asyncio.get_running_loop().call_later(0.2, wire.cut)

        for got in await _broken_off(mesh, cut_at_the_edge):
            assert "the task stream to the edge engine" in str(got)
        wire.let_through()
        await _check_serves_again(mesh, after=before, tally=tally)


async def test_a_broken_task_stream_where_one_engine_holds_all_layers(tally: Tally) -> None:
    """The same without a cloud."""
    shape = MeshShape(tiny_model("llama"), split=ONE_PLACE, scheduler={"chunk_tokens": 1})
    async with real_mesh(shape) as mesh:
        before = mesh.keeper.number
        for got in await _broken_off(mesh, mesh.wires.edge_tasks.cut):
            assert isinstance(got, SessionLostError)
        await _check_serves_again(mesh, after=before, tally=tally)


@pytest.mark.parametrize("stream", WIRES)
async def test_a_silent_peer_is_noticed(stream: str, tally: Tally) -> None:
    """Within two keepalives of the last byte the requests end, and the mesh serves once the link is back.

    Both ends notice. Where the engine is first, its other streams end too, and the first of those may be named.
    """
    shape = MeshShape(tiny_model("llama"), keepalive_s=KEEPALIVE_S, scheduler={"chunk_tokens": 3})
    async with real_mesh(shape) as mesh:
        before, wire = mesh.keeper.number, WIRES[stream](mesh.wires)

        def silence() -> None:
            wire.hold_upward()
            wire.hold_downward()

        begin_s = monotonic()
        for got in await _broken_off(mesh, silence):
            assert isinstance(got, SessionLostError)
            assert any(name in str(got) for name in (*CUTS, stream))
        assert monotonic() - begin_s < 2 * KEEPALIVE_S + 1
        wire.cut()
        wire.let_through()
        await _check_serves_again(mesh, after=before, tally=tally)
