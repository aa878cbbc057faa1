"""The compute thread of an engine.

Knows the rhythm: take what came, choose a unit, run it, again. Owns the runner of the session that is open; nothing
else touches a core or the model. Does not know edge from cloud.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Protocol

import structlog

from edgeweave.clock import Clock

THREAD_NAME = "compute"
REPORT_INTERVAL_US = 100_000
IDLE_REPORT_INTERVAL_US = 1_000_000
_log = structlog.get_logger(__name__)


class Runner(Protocol):
    """One session as the compute thread sees it. Every method is called on that thread only."""

    def take(self, event: object) -> None:
        """Take an event; never starts a unit."""
        ...

    def poll(self) -> bool:
        """Run the next unit, if one is ready; return whether anything was done."""
        ...

    def wake_us(self) -> int | None:
        """Return when `poll` may have work although no event came."""
        ...

    def report(self) -> None:
        """Tell the scheduler what was done since the last report."""
        ...

    def close(self) -> None:
        """Free everything of the session."""
        ...

    def crash(self, error: Exception) -> None:
        """Hear that one of the calls above raised `error`; the session must end."""
        ...


class Worker:
    """Runs one session at a time on a thread of its own. All public methods may be called from any thread."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._inbox: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._thread = Thread(target=self._run, name=THREAD_NAME, daemon=True)
        self._runner: Runner | None = None
        self._reported_us = 0
        self._interval_us = IDLE_REPORT_INTERVAL_US
        self._is_stopped = False

    def start(self) -> None:
        """Start the thread, under a name that Linux shows in top."""
        self._thread.start()
        with suppress(OSError):  # elsewhere there is no such file
            Path(f"/proc/self/task/{self._thread.native_id}/comm").write_text(THREAD_NAME, encoding="ascii")

    def stop(self) -> None:
        """End the thread after the unit that runs now, and wait for it."""
        self._inbox.put(self._stop)
        self._thread.join()

    def open(self, runner: Runner) -> None:
        """Make `runner` the session that is served. The one before must have been closed."""
        self._inbox.put(lambda: self._open(runner))

    def post(self, runner: Runner, event: object) -> None:
        """Give `event` to `runner`, if it is still the session that is served."""
        self._inbox.put(lambda: self._post(runner, event))

    def close(self, runner: Runner, closed: Callable[[], None]) -> None:
        """Free everything of `runner` after the unit that runs now; then call `closed` on the thread."""
        self._inbox.put(lambda: self._close(runner, closed))

    # ---- on the thread

    def _run(self) -> None:
        while not self._is_stopped:
            self._take_waiting()
            if self._runner is not None:
                self._guarded(self._runner, self._work)

    def _take_waiting(self) -> None:
        """Wait for an item, at most until something is due; then take all that wait."""
        try:
            self._inbox.get(timeout=self._patience_s())()
            while not self._inbox.empty():
                self._inbox.get_nowait()()
        except Empty:
            return

    def _patience_s(self) -> float | None:
        """How long nothing may happen: for ever without a session, else until a wake-up or the next report."""
        if self._runner is None:
            return None
        due_us = self._reported_us + self._interval_us
        wake_us = self._runner.wake_us()
        due_us = due_us if wake_us is None else min(due_us, wake_us)
        return max(0, due_us - self._clock.now_us()) / 1_000_000

    def _work(self, runner: Runner) -> None:
        """Run units as long as any is ready; between two of them take what came."""
        self._report_if_due(runner)
        while runner is self._runner and runner.poll():
            self._interval_us = REPORT_INTERVAL_US
            while not self._inbox.empty():
                self._inbox.get_nowait()()
            self._report_if_due(runner)

    def _report_if_due(self, runner: Runner) -> None:
        now_us = self._clock.now_us()
        if runner is self._runner and now_us >= self._reported_us + self._interval_us:
            self._reported_us, self._interval_us = now_us, IDLE_REPORT_INTERVAL_US
            runner.report()

    def _open(self, runner: Runner) -> None:
        self._runner = runner
        self._reported_us = self._clock.now_us()

    def _post(self, runner: Runner, event: object) -> None:
        if runner is self._runner:
            self._guarded(runner, lambda opened: opened.take(event))

    def _close(self, runner: Runner, closed: Callable[[], None]) -> None:
        if runner is self._runner:
            runner.close()
            self._runner = None
        closed()

    def _stop(self) -> None:
        self._is_stopped = True

    def _guarded(self, runner: Runner, call: Callable[[Runner], None]) -> None:
        """Make a call of a session; what it raises ends that session and nothing else."""
        try:
            call(runner)
        except Exception as error:  # noqa: BLE001 - the border of the session: whatever it is, only it ends
            self._runner = None if runner is self._runner else self._runner
            runner.close()
            runner.crash(error)
