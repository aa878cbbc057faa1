"""An engine as a process that stays: it waits in a read until it is asked.

Knows pipes and deadlines. Does not know what is asked.
"""

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import IO, Any

from contest.engines import Command
from edgeweave.errors import UnavailableError

START_DEADLINE_S = 600.0
"""Some engines compile when they start."""
ANSWER_DEADLINE_S = 600.0
_STOP_DEADLINE_S = 30.0
_MAX_LINE_BYTES = 16 << 20
_SHOWN_BYTES = 2000


class EngineProcess:
    """A running engine. Made by `start`."""

    def __init__(self, name: str, child: asyncio.subprocess.Process, errors: IO[bytes]) -> None:
        self.name = name
        self.settings: Mapping[str, str] = {}
        self._child = child
        self._errors = errors

    @classmethod
    @asynccontextmanager
    async def start(cls, name: str, command: Command) -> AsyncIterator["EngineProcess"]:
        """Start an engine and enter when it waits for its first turn; end it on leaving.

        Raises:
            UnavailableError: it ended, or was not ready in time; with its last words.
        """
        with tempfile.TemporaryFile() as errors:
            child = await asyncio.create_subprocess_exec(
                *command.words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env=command.environ,
                limit=_MAX_LINE_BYTES,
            )
            engine = cls(name, child, errors)
            try:
                engine.settings = (await engine._read(deadline_s=START_DEADLINE_S))["settings"]
                yield engine
            finally:
                await engine._stop()

    async def ask(self, request: Mapping[str, Any]) -> Any:
        """Give the engine its turn and return its answer.

        Raises:
            UnavailableError: it ended, or did not answer in time; with its last words.
        """
        if self._child.stdin is None:
            raise RuntimeError("a pipe was asked for")
        self._child.stdin.write(f"{json.dumps(request)}\n".encode())
        return await self._read(deadline_s=ANSWER_DEADLINE_S)

    async def _read(self, *, deadline_s: float) -> Any:
        if self._child.stdout is None:
            raise RuntimeError("a pipe was asked for")
        try:
            async with asyncio.timeout(deadline_s):
                line = await self._child.stdout.readline()
        except TimeoutError:
            raise UnavailableError(f"{self.name} said nothing for {deadline_s:.0f} s; {self._last_words()}") from None
        if not line:
            code = await self._child.wait()
            raise UnavailableError(f"{self.name} ended with exit code {code}; {self._last_words()}")
        return json.loads(line)

    def _last_words(self) -> str:
        self._errors.seek(max(0, self._errors.seek(0, 2) - _SHOWN_BYTES))
        return f"its last words:\n{self._errors.read().decode(errors='replace').strip()}"

    async def _stop(self) -> None:
        """Let it end for want of turns; kill it if it does not."""
        if self._child.stdin is not None:
            self._child.stdin.close()
        try:
            async with asyncio.timeout(_STOP_DEADLINE_S):
                await self._child.wait()
        except TimeoutError:
            self._child.kill()
            await self._child.wait()
