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


def simulate(shape: Shape, load: Load, *, warm_up: Load | None = None) -> Outcome:
    """Serve `load` with a mesh of `shape`, in virtual time.

    With `warm_up` the same mesh serves that before, so that `load` meets plans that follow measured times already.
    """
    player = _Player(shape)
    if warm_up is not None:
        player.play(warm_up)
    return player.play(load)


@dataclass(slots=True)
class _Player:
    """Plays loads, one after another, and keeps at most `max_open` requests of each open."""

    shape: Shape
    mesh: SimMesh = field(init=False)
    _load: Load = field(init=False)
    _served: dict[str, Served] = field(default_factory=dict)
    _num_open: int = 0
    _due: int = 0
    _end_us: int = 0

    def __post_init__(self) -> None:
        self.mesh = SimMesh(self.shape, self._token)

    def play(self, load: Load) -> Outcome:
        self._load, self._served, self._num_open, self._due = load, {}, 0, 0
        before, begin_us = self._sums(), self.mesh.events.now_us
        for arrival in load.arrivals:
            self.mesh.events.at(begin_us + arrival.at_us, self._arrive)
        self.mesh.events.run()
        if len(self._served) != len(load.arrivals):
            raise RuntimeError("the simulated mesh stopped before the load was served")
        return self._outcome(before, begin_us)

    def _arrive(self) -> None:
        self._due += 1
        self._submit_due()

    def _submit_due(self) -> None:
        load = self._load
        while len(self._served) < self._due and (load.max_open is None or self._num_open < load.max_open):
            arrival = load.arrivals[len(self._served)]
            request_id = f"{load.name} {len(self._served)}"
            self._served[request_id] = Served(self.mesh.events.now_us)
            self._num_open += 1
            self.mesh.submit(
                request_id,
                num_prompt_tokens=arrival.num_prompt_tokens,
                num_output_tokens=arrival.num_output_tokens,
            )

    def _token(self, emit: Emit, now_us: int) -> None:
        self._served[emit.request_id].token_us.append(now_us)
        if emit.finish is not None:
            self._end_us = now_us
            self._num_open -= 1
            self.mesh.events.after(0, self._submit_due)

    def _outcome(self, before: "_Sums", begin_us: int) -> Outcome:
        now = self._sums()
        causes = now.bubbles_us.keys()
        return Outcome(
            wall_us=self._end_us - begin_us,
            num_tokens=self._load.num_tokens,
            served=tuple(self._served.values()),
            busy_us=now.busy_us - before.busy_us,
            bubbles_us={cause: now.bubbles_us[cause] - before.bubbles_us.get(cause, 0) for cause in causes},
            num_steps=now.num_steps - before.num_steps,
            num_chunks=now.num_chunks - before.num_chunks,
            num_departures=now.num_departures - before.num_departures,
            hidden_share=now.hidden_share,
        )

    def _sums(self) -> "_Sums":
        session = self.mesh.scheduler.session
        if session is None:
            raise RuntimeError("the simulated mesh has no session")
        engine = session.totals.engines[Side.EDGE if self.shape.centralized else Side.CLOUD]
        return _Sums(
            busy_us=engine.busy_us,
            bubbles_us=dict(engine.bubbles_us),
            num_steps=session.totals.num_steps_done,
            num_chunks=session.totals.num_chunks_done,
            num_departures=session.replay.num_departures,
            hidden_share=session.totals.hidden_share,
        )


@dataclass(frozen=True, slots=True)
class _Sums:
    """What a mesh came to since its session began. Times are microseconds."""

    busy_us: int
    bubbles_us: dict[BubbleCause, int]
    num_steps: int
    num_chunks: int
    num_departures: int
    hidden_share: float


def _quantile(values: list[float] | list[int], share: float) -> float:
    ordered = sorted(values)
    if not ordered:
        return 0.0
    if share == 0.5:  # noqa: PLR2004 - the median averages the middle two
        return float(median(ordered))
    return float(ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))])
