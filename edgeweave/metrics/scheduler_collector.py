"""What the scheduler tells when it is asked for its metrics: meters, and the core as it is now."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from enum import Enum

from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from edgeweave.interleave.accounts import Account, Side
from edgeweave.interleave.nouns import Plan
from edgeweave.interleave.plans import PLAN_NAMES
from edgeweave.interleave.requests import Attempt
from edgeweave.interleave.session import Session
from edgeweave.metrics.engine_families import engine_families
from edgeweave.metrics.families import histogram, number, numbers, seconds
from edgeweave.metrics.mesh_metrics import LinkMetric, MeshMetric, PlanMetric, TimeMetric
from edgeweave.metrics.request_families import request_families
from edgeweave.metrics.request_metrics import RequestMetric
from edgeweave.metrics.scheduler_meter import SchedulerMeter

_PLAN_KINDS = {kind: name for name, kind in PLAN_NAMES.items()}


class SchedulerCollector(Collector):
    """Reads a meter and the core that it watches; `state` is that of the session, one of an enum of states."""

    def __init__(self, meter: SchedulerMeter, *, state: Callable[[], Enum]) -> None:
        self._core = meter.core
        self._meter = meter
        self._state = state

    def collect(self) -> Iterator[Family]:
        """Yield every metric of the scheduler."""
        session = self._core.session
        yield from request_families(self._core, self._meter.requests)
        yield from self._session_families(self._state())
        yield from self._engine_families()
        yield from self._link_families()
        yield from _plan_families(self._core.plan)
        if session is not None:
            yield from _now_families(session)

    def _session_families(self, state: Enum) -> Iterator[Family]:
        yield numbers(MeshMetric.SESSION_STATE, [((each.name.lower(),), each is state) for each in type(state)])
        yield number(MeshMetric.SESSIONS, self._meter.num_sessions)
        yield number(MeshMetric.DEPARTURES, self._meter.num_departures)

    def _engine_families(self) -> Iterator[Family]:
        engines = {side.value: engine for side, engine in self._meter.engines.items()}
        yield from engine_families(TimeMetric, engines)
        skipped = [((name,), engine.num_skipped_rows) for name, engine in engines.items()]
        yield numbers(TimeMetric.SKIPPED_ROWS, skipped)

    def _link_families(self) -> Iterator[Family]:
        meter = self._meter
        edge, cloud = meter.engines.get(Side.EDGE), meter.engines.get(Side.CLOUD)
        if edge is None or cloud is None:
            return
        arrived = [(("up",), cloud.received_bytes), (("down",), edge.received_bytes)]
        yield numbers(LinkMetric.HOP_BYTES, arrived)
        yield histogram(meter.chunk_away)
        yield histogram(meter.step_away)
        yield number(LinkMetric.AWAY, seconds(meter.away_us))
        yield number(LinkMetric.INSIDE, seconds(cloud.inside_us))


def _plan_families(plan: Plan) -> Iterator[Family]:
    yield numbers(PlanMetric.INFO, [((_PLAN_KINDS[plan.kind],), 1)])
    yield number(PlanMetric.NUMBER, plan.plan)
    yield number(PlanMetric.MAX_PREFILLS, plan.max_prefills)
    yield number(PlanMetric.MAX_STEPS, plan.max_steps)
    yield number(PlanMetric.FILL_TO_ROWS, plan.fill_to_rows)
    yield number(PlanMetric.MIN_SEGMENT, seconds(plan.min_segment_us))
    yield number(PlanMetric.DECODE_RETURN, seconds(plan.decode_return_us))


def _now_families(session: Session) -> Iterator[Family]:
    """Yield what is only there while a session is."""
    states = Counter(sequence.state for sequence in session.sequences.values())
    yield number(MeshMetric.NUM_CHUNKS, len(session.chunks))
    yield numbers(MeshMetric.NUM_SEQUENCES, [((state.value,), states[state]) for state in Attempt])
    yield from _kv_families({side.value: account for side, account in session.accounts.sides.items()})
    if session.lanes is not None:
        yield number(LinkMetric.ROUND_TRIP, seconds(session.measures.trips.shortest_us))
        yield number(LinkMetric.PREFILL_RATE, session.lanes.prefill_bytes_per_s)
        yield number(LinkMetric.HIDDEN_SHARE, session.totals.hidden_share)


def _kv_families(accounts: Mapping[str, Account]) -> Iterator[Family]:
    """Yield what is reserved, by the name of the engine."""
    free = {name: account.num_free for name, account in accounts.items()}
    total = {name: account.capacity.num_blocks for name, account in accounts.items()}
    by_state = [((name, "free"), free[name]) for name in accounts]
    by_state += [((name, "reserved"), total[name] - free[name]) for name in accounts]
    yield numbers(MeshMetric.KV_BLOCKS, by_state)
    yield numbers(RequestMetric.KV_CACHE_USAGE, [((name,), 1 - free[name] / total[name]) for name in accounts])
