"""`edgeweave top` against a real mesh over real gRPC, and against a scheduler that comes and goes."""

import asyncio
import io
import json
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from edgeweave.cli.top import Away, Seen, TopOptions, run_top, watch
from edgeweave.cli.top_interval import MeshInterval
from edgeweave.client import Client
from edgeweave.errors import UnavailableError
from edgeweave.interleave.nouns import BubbleCause
from edgeweave.settings import TlsSettings
from fakes.mesh_states import AFTER_MESSAGE, BEFORE_MESSAGE, DOWN_MESSAGE
from fakes.real_mesh import MeshShape, RealMesh, real_mesh
from fakes.real_models import ONE_PLACE
from fakes.scheduler import FakeScheduler, serve
from integration.mesh.clients import answers
from models.tiny import references, tiny_model

EXPECTED = references("llama")
TLS_FOLDER = Path(__file__).parents[1] / "rpc" / "tls"
LONGEST_WAIT_S = 20.0


class Terminal(io.StringIO):
    """A terminal of 100 columns that tells when a text was shown."""

    def __init__(self) -> None:
        super().__init__()
        self.console = Console(file=self, width=100, height=40, force_terminal=True)
        self._awaited: dict[str, asyncio.Event] = {}

    def write(self, text: str) -> int:
        """Show more."""
        written = super().write(text)
        for awaited, event in self._awaited.items():
            if awaited in self.getvalue():
                event.set()
        return written

    async def until(self, text: str) -> None:
        """Return when `text` was shown."""
        event = self._awaited.setdefault(text, asyncio.Event())
        if text not in self.getvalue():
            async with asyncio.timeout(LONGEST_WAIT_S):
                await event.wait()


async def told(options: TopOptions) -> tuple[int, str, str]:
    """Run `top` to its end; return exit code, output and warnings."""
    output, warnings = io.StringIO(), io.StringIO()
    code = await run_top(options, console=Console(file=output, width=80), warnings=Console(file=warnings))
    return code, output.getvalue(), warnings.getvalue()


def fake(*, mesh: Any = BEFORE_MESSAGE) -> FakeScheduler:
    """A scheduler that shows what it is told to."""
    return FakeScheduler(script=lambda _: (), mesh=mesh)


@asynccontextmanager
async def busy(mesh: RealMesh) -> AsyncIterator[None]:
    """Let clients ask, again and again, while the block runs."""

    async def ask() -> None:
        while True:
            await answers(mesh, EXPECTED)

    await answers(mesh, EXPECTED)
    asking = asyncio.create_task(ask())
    try:
        yield
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


@pytest.mark.parametrize("split", ["1:1", ONE_PLACE])
async def test_once_tells_what_was_served(split: str) -> None:
    """Requests, tokens, times of users, and for each engine a time that is whole: busy, bubbles and idle."""
    async with real_mesh(MeshShape(tiny_model("llama"), split=split)) as mesh, busy(mesh):
        code, output, _ = await told(TopOptions(mesh.target, interval_s=0.8, is_once=True, is_json=True))
        state = await mesh.state()
    figures = json.loads(output)
    assert (code, figures["state"], figures["reason"]) == (0, "ready", None)
    assert figures["interval_s"] == pytest.approx(0.8, rel=0.5)
    assert set(figures["engines"]) == ({"edge"} if split == ONE_PLACE else {"edge", "cloud"})
    for engine in figures["engines"].values():
        assert engine["state"] == "serves"
        parts = [engine["busy_share"], engine["idle_share"], *engine["bubble_shares"].values()]
        assert sum(parts) == pytest.approx(1.0, abs=1e-3)
        assert len(engine["bubble_shares"]) == len(BubbleCause)
        assert engine["busy_share"] > 0
    assert figures["tokens"]["num_output_tokens"] > 0
    assert figures["tokens"]["num_prefill_tokens"] > 0
    assert figures["in_flight"]["steps_per_s"] > 0
    ended = figures["requests"]["ended_in_all"]
    assert len(EXPECTED) <= ended["length"] + ended["stop"] <= sum(state.ends.values())
    for times in figures["last_minute"].values():
        assert times["num_times"] >= len(EXPECTED)
        assert 0 <= times["p50_us"] <= times["p90_us"] <= times["p99_us"]
    if split == ONE_PLACE:
        assert figures["link"] is None
    else:
        assert 0 <= figures["link"]["hidden_share"] <= 1
        assert min(figures["link"][name] for name in ("rtt_us", "up_bits_per_s", "down_bits_per_s")) > 0


async def test_once_shows_a_mesh_that_is_down_and_says_so_by_its_code() -> None:
    """A program need not read to know."""
    async with serve(fake()) as scheduler:
        showing = asyncio.create_task(told(TopOptions(scheduler.target, is_once=True)))
        await _until_watched(scheduler)
        scheduler.show(DOWN_MESSAGE)
        code, output, _ = await showing
    assert code == 1
    assert "down, the last 3.0 s: the prefill lane broke:" in output


async def test_a_terminal_shows_one_picture_after_the_other_until_ctrl_c() -> None:
    """It ends at once, without a word, and gives the screen back."""
    terminal = Terminal()
    async with serve(fake()) as scheduler:
        options = TopOptions(scheduler.target, interval_s=0.1)
        showing = asyncio.create_task(run_top(options, console=terminal.console, warnings=terminal.console))
        await terminal.until(f"asks the scheduler at {scheduler.target}")
        await _until_watched(scheduler)
        scheduler.show(AFTER_MESSAGE)
        await terminal.until("8,231 tokens/s in")
        scheduler.show(DOWN_MESSAGE)
        await terminal.until("the prefill lane broke: connection reset")
        signal.raise_signal(signal.SIGINT)
        async with asyncio.timeout(LONGEST_WAIT_S):
            assert await showing == 0
    shown = terminal.getvalue()
    assert "Traceback" not in shown
    assert shown.rindex("\x1b[?1049l") > shown.rindex("lane broke")


async def test_a_scheduler_that_goes_away_is_waited_for() -> None:
    """Its going is told with where it was; when it is back, its sums begin anew."""
    async with AsyncExitStack() as stack:
        first = AsyncExitStack()
        scheduler = await first.enter_async_context(serve(fake()))
        target = scheduler.target
        client = await stack.enter_async_context(Client(target))
        seen = await stack.enter_async_context(aclosing(watch(client, interval_s=0.01)))
        waiting = asyncio.create_task(_next(seen))
        await _until_watched(scheduler)
        scheduler.show(AFTER_MESSAGE)
        assert isinstance(await waiting, MeshInterval)
        await first.aclose()
        away = [await _next(seen), await _next(seen)]
        assert all(isinstance(each, Away) for each in away)
        assert f"the scheduler at {target} does not answer" in str(away[-1])
        again = await stack.enter_async_context(serve(fake(), listen=target))
        waiting = asyncio.create_task(_next(seen, until=MeshInterval))
        await _until_watched(again)
        again.show(AFTER_MESSAGE)
        interval = await waiting
    assert isinstance(interval, MeshInterval)
    assert interval.num_output_tokens == 2_280


async def test_into_a_file_goes_one_line_for_each_interval() -> None:
    """JSON lines, and the scheduler's going on standard error."""
    output, warnings = Terminal(), Terminal()
    async with AsyncExitStack() as stack:
        scheduler = await stack.enter_async_context(serve(fake()))
        options = TopOptions(scheduler.target, interval_s=0.1, is_json=True)
        showing = asyncio.create_task(run_top(options, console=output.console, warnings=warnings.console))
        await _until_watched(scheduler)
        scheduler.show(AFTER_MESSAGE)
        await output.until('"state": "ready"')
        scheduler.show(DOWN_MESSAGE)
        await output.until('"state": "down"')
        await stack.aclose()
        await warnings.until("does not answer")
        showing.cancel()
        await asyncio.gather(showing, return_exceptions=True)
    lines = [json.loads(line) for line in output.getvalue().splitlines()]
    assert [line["state"] for line in lines] == ["ready", "down"]


async def test_a_scheduler_behind_tls_is_asked_with_our_certificate() -> None:
    """By the same three files as services have; without them it does not answer us."""
    ca, cert, key = (TLS_FOLDER / name for name in ("authority.pem", "engine.pem", "engine.key"))
    async with serve(fake(), tls=TlsSettings(ca_file=ca, cert_file=cert, key_file=key)) as scheduler:
        options = TopOptions(scheduler.target, tls_ca_file=ca, tls_cert_file=cert, tls_key_file=key, is_once=True)
        showing = asyncio.create_task(told(options))
        await _until_watched(scheduler)
        scheduler.show(AFTER_MESSAGE)
        code, output, _ = await showing
        with pytest.raises(UnavailableError, match=scheduler.target):
            await told(TopOptions(scheduler.target, is_once=True))
    assert code == 0
    assert "1,000 Mbit/s up" in output


async def _next(seen: AsyncIterator[Seen], *, until: type[Seen] | None = None) -> Seen:
    """Return what is seen next, or the next of a kind."""
    async with asyncio.timeout(LONGEST_WAIT_S):
        async for each in seen:
            if until is None or isinstance(each, until):
                return each
    raise AssertionError("nothing more is seen")


async def _until_watched(scheduler: FakeScheduler) -> None:
    """Return when a watcher has the state that is shown now."""
    async with asyncio.timeout(LONGEST_WAIT_S):
        await scheduler.watched.wait()
