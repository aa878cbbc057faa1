"""The clients of a load."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from edgeweave.client import TokenDelta
from edgeweave.clock import ManualClock
from edgeweave.errors import UnavailableError
from edgeweave.sim.load import Arrival, Load
from weaving.player import Player


class Mesh:
    """Answers each request when the test lets it."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.asked: asyncio.Queue[int] = asyncio.Queue()
        self.may_answer = {number: asyncio.Event() for number in (1, 2, 3)}
        self.num_open = 0
        self.most_open = 0

    async def ask(self, prompt: tuple[int, ...], max_tokens: int) -> AsyncGenerator[TokenDelta, None]:
        self.num_open += 1
        self.most_open = max(self.most_open, self.num_open)
        self.asked.put_nowait(prompt[0])
        await self.may_answer[prompt[0]].wait()
        yield TokenDelta(0, (1,))
        self.clock.advance(10)
        yield TokenDelta(1, tuple(range(2, max_tokens + 1)))
        self.num_open -= 1


async def test_a_client_waits_until_another_has_ended() -> None:
    """No more than `max_open` are asked at once, in order of arrival, and waiting is not part of a request's time."""
    clock = ManualClock()
    mesh = Mesh(clock)
    load = Load("few", (Arrival(0, 1, 3),) * 3, max_open=2)
    playing = asyncio.create_task(Player(mesh.ask, clock).play(load, [(1,), (2,), (3,)]))
    for number in (1, 2, 3):
        assert await mesh.asked.get() == number
        clock.advance(100)
        mesh.may_answer[number].set()
    answers = await playing
    assert mesh.most_open == 2
    assert [answer.token_ids for answer in answers] == [(1, 2, 3)] * 3
    assert all(answer.token_us[0] < answer.token_us[1] == answer.token_us[2] for answer in answers)
    assert answers[2].submitted_us >= 100


async def test_a_request_comes_when_it_is_due() -> None:
    """One that is late already, because the loop was busy, comes at once."""
    clock = ManualClock(start_us=5)

    async def ask(prompt: tuple[int, ...], max_tokens: int) -> AsyncGenerator[TokenDelta, None]:
        yield TokenDelta(0, (prompt[0],) * max_tokens)

    answers = await Player(ask, clock).play(Load("two", (Arrival(0, 1, 1), Arrival(1, 1, 1))), [(7,), (8,)])
    assert [answer.token_ids for answer in answers] == [(7,), (8,)]
    assert [answer.submitted_us for answer in answers] == [5, 5]


async def test_what_a_mesh_refuses_ends_the_load() -> None:
    async def ask(prompt: tuple[int, ...], max_tokens: int) -> AsyncGenerator[TokenDelta, None]:
        if prompt == (2,):
            raise UnavailableError(f"no {max_tokens}")
        await asyncio.Event().wait()
        yield TokenDelta(0, (1,))

    with pytest.raises(ExceptionGroup) as refused:
        await Player(ask, ManualClock()).play(Load("two", (Arrival(0, 1, 1),) * 2), [(1,), (2,)])
    assert [str(error) for error in refused.value.exceptions] == ["no 1"]
