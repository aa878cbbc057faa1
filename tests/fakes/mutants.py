"""Cores that each break one rule of the protocol. Whatever tests the rules has to catch every one of them.

Each changes what goes into or comes out of a real core, and nothing inside of it.
"""

from collections.abc import Callable
from dataclasses import replace

from edgeweave.interleave.cloud_core import CloudCore, CloudEvent
from edgeweave.interleave.edge_core import EdgeCore
from edgeweave.interleave.effects import CloudEffect, DropUnit, EdgeEffect, RunHead, RunSegment, RunStep, RunTail
from edgeweave.interleave.nouns import ChunkDone, Lane, StepDone
from edgeweave.interleave.requests import Attempt
from edgeweave.interleave.scheduler_core import SchedulerCore
from edgeweave.interleave.scheduler_events import FromEngine, SchedulerEffect, SchedulerEvent
from fakes.mesh import Config
from fakes.shells import positions

ANY_TOKEN = 1


class NoSkipInCloud(CloudCore):
    """Breaks the rule that rows of released sequences are skipped: has them run."""

    def poll(self, *, now_us: int) -> list[CloudEffect]:
        """Return the next unit with every row live."""
        return [
            replace(effect, live=(True,) * len(effect.live)) if isinstance(effect, RunSegment | RunStep) else effect
            for effect in super().poll(now_us=now_us)
        ]


class NoSkipOnEdge(EdgeCore):
    """Breaks the same rule on the edge."""

    def poll(self, *, now_us: int) -> list[EdgeEffect]:
        """Return the next unit with every row live."""
        return [_all_live(effect) for effect in super().poll(now_us=now_us)]


def _all_live(effect: EdgeEffect) -> EdgeEffect:
    if isinstance(effect, RunTail):
        return replace(effect, live=(True,) * len(effect.live))
    if isinstance(effect, RunHead):
        known = iter(effect.token_ids)
        tokens = tuple(next(known) if live else ANY_TOKEN for _, _, live in positions(effect.rows, effect.live))
        return replace(effect, live=(True,) * len(effect.live), token_ids=tokens)
    return effect


class NoDropInCloud(CloudCore):
    """Breaks the rule of dropping: keeps a chunk open that nobody waits for."""

    def on(self, event: CloudEvent, *, now_us: int) -> list[CloudEffect]:
        """Take an event, and put back the chunks that it dropped."""
        before = dict(self.chunks.open)
        effects = super().on(event, now_us=now_us)
        dropped = [e for e in effects if isinstance(e, DropUnit) and e.lane is Lane.PREFILL and e.unit in before]
        for effect in dropped:
            self.chunks.open[effect.unit] = before[effect.unit]
        return [effect for effect in effects if effect not in dropped]


class NoHold(CloudCore):
    """Breaks the rule that frames before their task are held: throws them away."""

    def on(self, event: CloudEvent, *, now_us: int) -> list[CloudEffect]:
        """Take an event, and forget what was held for later."""
        effects = super().on(event, now_us=now_us)
        self.chunks.early.clear()
        return effects


class NoIgnore(SchedulerCore):
    """Breaks the rule that samples of a released sequence are ignored: takes them."""

    def on(self, event: SchedulerEvent, *, now_us: int) -> list[SchedulerEffect]:
        """Take an event as if every sequence that it names were live."""
        if isinstance(event, FromEngine) and isinstance(event.message, ChunkDone | StepDone) and self.session:
            for sample in event.message.samples:
                if sample.sequence in self.session.sequences:
                    self.session.sequences[sample.sequence].state = Attempt.DECODING
        return super().on(event, now_us=now_us)


def _no_skip_in_cloud(config: Config) -> Config:
    return replace(config, cloud_core=NoSkipInCloud)


def _no_skip_on_edge(config: Config) -> Config:
    return replace(config, edge_core=NoSkipOnEdge)


def _no_drop(config: Config) -> Config:
    return replace(config, cloud_core=NoDropInCloud)


def _no_hold(config: Config) -> Config:
    return replace(config, cloud_core=NoHold)


def _no_ignore(config: Config) -> Config:
    return replace(config, scheduler_core=NoIgnore)


MUTATIONS: dict[str, Callable[[Config], Config]] = {
    "no skip in the cloud": _no_skip_in_cloud,
    "no skip on the edge": _no_skip_on_edge,
    "no drop": _no_drop,
    "no hold": _no_hold,
    "no ignore": _no_ignore,
}
