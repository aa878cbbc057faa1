"""Plays a load against a mesh: submits each request in time, and notes when its tokens come.

Knows arrivals and how many requests may be open. Does not know plans, nor whether the tokens are right.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import dataclass

from edgeweave.client import TokenDelta
from edgeweave.clock import Clock
from edgeweave.sim.load import Arrival, Load
from weaving.answers import Answer
from weaving.loads import Prompt

Ask = Callable[[Prompt, int], AsyncGenerator[TokenDelta, None]]
"""Asks for the output to a prompt, of so many tokens."""


@dataclass(frozen=True, slots=True)
class Player:
    """Stands for all clients of a load, and asks by `ask` for each."""

    ask: Ask
    clock: Clock

    async def play(self, load: Load, prompts: Sequence[Prompt]) -> list[Answer]:
        """Serve `load` and return its answers in order of arrival.

        At most `load.max_open` requests are open at once; the next one is submitted when one has ended.

        Raises:
            ExceptionGroup: of what the mesh answered instead of tokens.
        """
        gate = nullcontext() if load.max_open is None else asyncio.Semaphore(load.max_open)
        begin_us = self.clock.now_us()
        async with asyncio.TaskGroup() as clients:
            tasks = [
                clients.create_task(self._ask_in_time(arrival, prompt, begin_us=begin_us, gate=gate))
                for arrival, prompt in zip(load.arrivals, prompts, strict=True)
            ]
        return [task.result() for task in tasks]

    async def _ask_in_time(
        self, arrival: Arrival, prompt: Prompt, *, begin_us: int, gate: "asyncio.Semaphore | nullcontext[None]"
    ) -> Answer:
        wait_us = begin_us + arrival.at_us - self.clock.now_us()
        if wait_us > 0:
            await asyncio.sleep(wait_us / 1e6)
        async with gate:
            return await self._ask(prompt, max_tokens=arrival.num_output_tokens)

    async def _ask(self, prompt: Prompt, *, max_tokens: int) -> Answer:
        token_ids: list[int] = []
        token_us: list[int] = []
        submitted_us = self.clock.now_us()
        async with aclosing(self.ask(prompt, max_tokens)) as deltas:
            async for delta in deltas:
                token_us += [self.clock.now_us()] * len(delta.token_ids)
                token_ids += delta.token_ids
        return Answer(submitted_us, len(prompt), tuple(token_ids), tuple(token_us))
