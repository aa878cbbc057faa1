"""Plays a load through a simulated mesh and sums up what users and engines saw."""

from dataclasses import dataclass, field
from statistics import median

from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import BubbleCause
from edgeweave.interleave.scheduler_events import Emit
from edgeweave.sim.load import Load
from edgeweave.sim.mesh import Shape, SimMesh


@dataclass(slots=True)
class Served:
    """When one request came and when its tokens did, in microseconds."""

    arrived_us: int
    token_us: list[int] = field(default_factory=list)

    @property
    def first_token_us(self) -> int:
        """Time to first token."""
        return self.token_us[0] - self.arrived_us

    @property
    def per_token_us(self) -> float:
        """Time per output token after the first; 0 where there is one."""
        later = len(self.token_us) - 1
        return (self.token_us[-1] - self.token_us[0]) / later if later else 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to. Times are microseconds, throughput is prompt and output tokens a second."""

    wall_us: int
    num_tokens: int
    served: tuple[Served, ...]
    busy_us: int
    bubbles_us: dict[BubbleCause, int]
    num_steps: int
    num_chunks: int
    num_departures: int
    hidden_share: float

    @property
    def tokens_per_s(self) -> float:
        """Throughput of the whole run, ramp and drain included."""
        return self.num_tokens / (self.wall_us / 1e6)

    @property
    def busy_share(self) -> float:
        """Share of the run in which the engine that holds the body ran."""
        return self.busy_us / self.wall_us

    def first_token_us(self, share: float = 0.5) -> float:
        """Return the quantile `share` of the time to first token."""
        return _quantile([served.first_token_us for served in self.served], share)

    def per_token_us(self, share: float = 0.5) -> float:
        """Return the quantile `share` of the time per output token."""
        return _quantile([served.per_token_us for served in self.served if len(served.token_us) > 1], share)


@dataclass(slots=True)
class _Player:
    """Keeps at most `max_open` requests of a load open."""

    load: Load
    mesh: SimMesh = field(init=False)
    served: dict[str, Served] = field(default_factory=dict)
    _num_open: int = 0
    _next: int = 0
    _due: int = 0
    _end_us: int = 0

    def play(self, shape: Shape) -> Outcome:
        self.mesh = SimMesh(shape, self._token)
        for arrival in self.load.arrivals:
            self.mesh.events.at(arrival.at_us, self._arrive)
        self.mesh.events.run()
        return self._outcome()

    def _arrive(self) -> None:
        self._due += 1
        self._submit_due()

    def _submit_due(self) -> None:
        while self._next < self._due and (self.load.max_open is None or self._num_open < self.load.max_open):
            arrival = self.load.arrivals[self._next]
            request_id = str(self._next)
            self.served[request_id] = Served(self.mesh.events.now_us)
            self._num_open += 1
            self._next += 1
            self.mesh.submit(
                request_id,
                num_prompt_tokens=arrival.num_prompt_tokens,
                num_output_tokens=arrival.num_output_tokens,
            )

    def _token(self, emit: Emit, now_us: int) -> None:
        self.served[emit.request_id].token_us.append(now_us)
        if emit.finish is not None:
            self._end_us = now_us
            self._num_open -= 1
            self.mesh.events.after(0, self._submit_due)

    def _outcome(self) -> Outcome:
        session = self.mesh.scheduler.session
        if session is None or len(self.served) != len(self.load.arrivals):
            raise RuntimeError("the simulated mesh stopped before the load was served")
        totals = session.totals.engines[Side.EDGE if self.mesh.shape.centralized else Side.CLOUD]
        return Outcome(
            wall_us=self._end_us,
            num_tokens=self.load.num_tokens,
            served=tuple(self.served.values()),
            busy_us=totals.busy_us,
            bubbles_us=dict(totals.bubbles_us),
            num_steps=session.totals.num_steps_done,
            num_chunks=session.totals.num_chunks_done,
            num_departures=session.replay.num_departures,
            hidden_share=session.totals.hidden_share,
        )


def simulate(shape: Shape, load: Load) -> Outcome:
    """Serve `load` with a mesh of `shape`, in virtual time."""
    return _Player(load).play(shape)


def _quantile(values: list[float] | list[int], share: float) -> float:
    ordered = sorted(values)
    if not ordered:
        return 0.0
    if share == 0.5:  # noqa: PLR2004 - the median averages the middle two
        return float(median(ordered))
    return float(ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))])
