"""An engine's own side of a contest: it waits for its turn, does the work, tells how long it took, and waits again.

Requests and answers are JSON objects, one a line; before the first answer comes a line with the settings. Who waits
sleeps in a read. Knows no engine, and needs nothing but the standard library: an engine of another environment
imports this as well.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TextIO

Prompts = Sequence[Sequence[int]]


class Player(Protocol):
    """An engine that can generate."""

    def play(self, prompts: Prompts, *, num_tokens: int) -> tuple[list[list[int]], float | None]:
        """Return the greedy outputs of `num_tokens` each, and when all had their first token, by `perf_counter`.

        `None` for the latter where the engine does not tell.
        """
        ...


@dataclass(frozen=True, slots=True)
class Streams:
    """Where lines of requests come from, and where those of answers go."""

    requests: Iterable[str]
    answers: TextIO

    @classmethod
    def taken(cls) -> "Streams":
        """Take standard input and output; what else is printed goes to standard error.

        It comes first in a program: what is imported later may print as it likes.
        """
        answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        return cls(sys.stdin, answers)

    def serve(self, answer: Callable[[Mapping[str, Any]], Mapping[str, Any]], *, settings: Mapping[str, str]) -> None:
        """Tell `settings`, then answer each request until there are no more."""
        self._write({"settings": dict(settings)})
        for line in self.requests:
            self._write(answer(json.loads(line)))

    def serve_player(self, player: Player, *, settings: Mapping[str, str], is_one_process: bool = True) -> None:
        """Let `player` take its turns. Only where it is one process is its CPU time known."""
        self.serve(lambda request: _turn(player, request, is_one_process=is_one_process), settings=settings)

    def _write(self, content: Mapping[str, Any]) -> None:
        self.answers.write(f"{json.dumps(content)}\n")
        self.answers.flush()


def _turn(player: Player, request: Mapping[str, Any], *, is_one_process: bool) -> dict[str, Any]:
    begin_s, begin_cpu_s = time.perf_counter(), time.process_time()
    outputs, first_s = player.play(request["prompts"], num_tokens=request["num_tokens"])
    total_s, cpu_s = time.perf_counter() - begin_s, time.process_time() - begin_cpu_s
    since_begin_s = None if first_s is None else first_s - begin_s
    times = {"first_s": since_begin_s, "total_s": total_s, "cpu_s": cpu_s if is_one_process else None}
    return {"outputs": outputs, **times}
