"""One session on the compute thread: a core, and the device that does what the core asks.

Knows how effects are carried out in order and how a failed unit is told to the core. The services say what each effect
does with tensors.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

import structlog

from edgeweave.clock import Clock
from edgeweave.engine.parts import UnitTime, own_time
from edgeweave.engine.port import Port
from edgeweave.errors import EdgeweaveError, UnitFailedError
from edgeweave.interleave.effects import RUNS, DropUnit, FreeKv, Tell, UnitEnded
from edgeweave.interleave.nouns import ErrorCode, Timeline

_log = structlog.get_logger(__name__)


class Core(Protocol):
    """What edge and cloud cores have in common."""

    def on(self, event: Any, *, now_us: int) -> Sequence[Any]:
        """Take an event; return effects."""
        ...

    def poll(self, *, now_us: int) -> Sequence[Any]:
        """Return the next unit, or nothing."""
        ...

    def take_timeline(self, *, now_us: int) -> Timeline:
        """Return what was done since the last call."""
        ...


CoreT = TypeVar("CoreT", bound=Core)


class CoreRunner(ABC, Generic[CoreT]):
    """Runs one core. Everything here happens on the compute thread."""

    def __init__(self, core: CoreT, *, port: Port, clock: Clock, unit_time: UnitTime = own_time) -> None:
        self.core = core
        self.port = port
        self.clock = clock
        self._unit_time = unit_time
        self._told_us = 0

    def take(self, event: Any) -> None:
        """Give the core a task."""
        self.carry_out(self.core.on(event, now_us=self._now_us()))

    def poll(self) -> bool:
        """Run the next unit, if one is ready."""
        effects = self.core.poll(now_us=self._now_us())
        self.carry_out(effects)
        return bool(effects)

    def wake_us(self) -> int | None:
        """Return when `poll` may have work although no event came."""
        return None

    def report(self) -> None:
        """Tell the scheduler what was done."""
        self.port.tell(self.core.take_timeline(now_us=self.clock.now_us()))

    def crash(self, error: Exception) -> None:
        """End the session because of `error`."""
        if isinstance(error, EdgeweaveError):
            self.port.end(error)
            return
        _log.error("session_crashed", exc_info=error)
        self.port.end(EdgeweaveError("an internal error in the engine, see its log; the session ends"))

    def carry_out(self, effects: Sequence[Any]) -> None:
        """Do what the core asked for, in order."""
        for effect in effects:
            if isinstance(effect, RUNS):
                self.carry_out(self.core.on(self._run(effect), now_us=self._now_us()))
            elif isinstance(effect, Tell):
                self.port.tell(effect.message)
            elif isinstance(effect, FreeKv):
                self.free(effect.sequences)
            elif isinstance(effect, DropUnit):
                self.forget(effect)
                self.port.drop(effect.lane, effect.unit)
            else:
                self.send(effect)

    @abstractmethod
    def compute(self, effect: Any) -> UnitEnded:
        """Compute one unit; return how it ended, with the tokens that it drew."""

    @abstractmethod
    def send(self, effect: Any) -> None:
        """Send what was computed."""

    @abstractmethod
    def forget(self, effect: DropUnit) -> None:
        """Forget the tensors of a unit."""

    @abstractmethod
    def free(self, sequences: tuple[int, ...]) -> None:
        """Free KV."""

    @abstractmethod
    def close(self) -> None:
        """Free everything of the session."""

    def _now_us(self) -> int:
        """Return the time that the core is told: a unit begins when the core says that it does."""
        self._told_us = self.clock.now_us()
        return self._told_us

    def _run(self, effect: Any) -> UnitEnded:
        try:
            with self._unit_time(effect, self._told_us):
                return self.compute(effect)
        except Exception as error:  # noqa: BLE001 - the border of a unit: whatever it is, only its sequences fail
            _log.error("unit_failed", unit=type(effect).__name__, exc_info=error)
            return UnitEnded(failure=_code_of(error))


def _code_of(error: Exception) -> ErrorCode:
    if isinstance(error, UnitFailedError):
        return getattr(error, "code", ErrorCode.COMPUTE)
    is_memory = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    return ErrorCode.OUT_OF_MEMORY if is_memory else ErrorCode.COMPUTE
