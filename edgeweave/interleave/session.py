"""What the scheduler keeps of one session: sequences, chunks in flight, accounts, sums. It dies with the session.

Knows who is live and what is open. Decides nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from edgeweave.interleave.accounts import Account, Accounts, Side
from edgeweave.interleave.measures import Measures
from edgeweave.interleave.nouns import Chunk, ChunkDone, LanesReady, Released, Row, Segment, StepDone, Timeline
from edgeweave.interleave.replay import Replay
from edgeweave.interleave.requests import Attempt, Request, SchedulerSequence
from edgeweave.interleave.round_trips import RoundTrips
from edgeweave.interleave.scheduler_events import Connected
from edgeweave.interleave.totals import SessionTotals


@dataclass(frozen=True, slots=True)
class Issued:
    """A chunk in flight."""

    chunk: Chunk
    deadline_us: int


@dataclass(slots=True)
class Session:
    """One session. Times are microseconds of the scheduler's clock.

    `staged_tokens` is how many hidden states both sides hold; None where the edge holds all layers.
    """

    number: int
    body: Segment
    accounts: Accounts
    lanes: LanesReady | None
    vocab_size: int | None
    max_positions: int | None
    staged_tokens: int | None
    replay: Replay
    measures: Measures
    sequences: dict[int, SchedulerSequence] = field(default_factory=dict)
    chunks: dict[int, Issued] = field(default_factory=dict)
    totals: SessionTotals = field(default_factory=SessionTotals)
    is_ending: bool = False
    _live: dict[int, SchedulerSequence] = field(default_factory=dict)
    _unissued: dict[int, SchedulerSequence] = field(default_factory=dict)
    _growing: dict[int, SchedulerSequence] = field(default_factory=dict)
    _last_sequence: int = 0
    _last_chunk: int = 0

    @classmethod
    def opened(cls, event: Connected) -> "Session":
        """Return the session that `event` begins, with everything free."""
        capacities = {Side.EDGE: event.edge.kv} | ({Side.CLOUD: event.cloud.kv} if event.cloud is not None else {})
        accounts = Accounts({side: Account(capacity) for side, capacity in capacities.items()})
        replay = Replay(holds_body=event.cloud is None)
        return cls(
            number=event.session,
            body=event.edge.body,
            accounts=accounts,
            lanes=event.lanes,
            vocab_size=event.edge.vocab_size,
            max_positions=event.edge.max_positions,
            staged_tokens=_staged_tokens(event),
            replay=replay,
            measures=_measures_of(event),
        )

    @property
    def live(self) -> list[SchedulerSequence]:
        """Sequences whose results still count, oldest first."""
        return list(self._live.values())

    @property
    def num_live(self) -> int:
        """How many sequences' results still count."""
        return len(self._live)

    @property
    def prefilling(self) -> list[SchedulerSequence]:
        """Live sequences with prompt tokens that are not in any chunk yet, oldest first."""
        return list(self._unissued.values())

    @property
    def prefill_tokens_left(self) -> int:
        """Prompt tokens of open sequences that are in no chunk yet, or in one that is away."""
        unissued = sum(sequence.num_prefill - sequence.issued for sequence in self.prefilling)
        return unissued + sum(issued.chunk.num_tokens for issued in self.chunks.values())

    @property
    def num_decoding(self) -> int:
        """Live sequences that are through their prefill."""
        return sum(sequence.state is Attempt.DECODING for sequence in self._live.values())

    @property
    def is_decoding(self) -> bool:
        """Whether a live sequence decodes."""
        return any(sequence.state is Attempt.DECODING for sequence in self._live.values())

    def first_to_grow(self) -> SchedulerSequence | None:
        """Return the oldest sequence that comes near its limit."""
        for number in sorted(self._growing):
            if self._growing[number].wants_growth(block_tokens=self.accounts.largest_block):
                return self._growing[number]
            del self._growing[number]
        return None

    def live_sequence(self, number: int) -> SchedulerSequence | None:
        """Return the sequence if its results still count."""
        sequence = self.sequences.get(number)
        return None if sequence is None or sequence.state is Attempt.RELEASING else sequence

    def open(self, request: Request, *, now_us: int) -> SchedulerSequence:
        """Reserve blocks on all sides and open a sequence for `request`."""
        self._last_sequence += 1
        number = self._last_sequence
        num_tokens = request.num_tokens
        token_limit = self.accounts.admit(number, request.need)
        sequence = SchedulerSequence(
            number, request, num_tokens, token_limit, num_tokens, now_us, unreleased=set(self.accounts.sides)
        )
        self.sequences[number] = self._live[number] = self._unissued[number] = sequence
        return sequence

    def issue(
        self, rows: tuple[Row, ...], *, segments: tuple[Segment, ...], plan: int, deadline_ms: int, now_us: int
    ) -> Chunk:
        """Give the next chunk its number and count it as in flight."""
        self._last_chunk += 1
        for row in rows:
            sequence = self.sequences[row.sequence]
            sequence.issued = row.stop
            if sequence.issued == sequence.num_prefill:
                del self._unissued[row.sequence]
        chunk = Chunk(self._last_chunk, rows, segments, plan, deadline_ms)
        self.measures.take_chunk(chunk.num_tokens)
        self.chunks[chunk.chunk] = Issued(chunk, now_us + deadline_ms * 1000)
        return chunk

    def take_token(self, sequence: SchedulerSequence, token_id: int, *, now_us: int) -> None:
        """A live sequence sampled a token; it may come near its limit by it."""
        sequence.take(token_id, now_us=now_us)
        if sequence.wants_growth(block_tokens=self.accounts.largest_block):
            self._growing[sequence.number] = sequence

    def finish(self, sequence: SchedulerSequence) -> None:
        """A sequence ended by itself: the edge freed it, only the cloud has to be told."""
        self._leave(sequence)

    def start_release(self, sequences: Iterable[SchedulerSequence], *, now_us: int) -> None:
        """Ignore these sequences from now on; chunks without a live sequence are no longer in flight."""
        for sequence in sequences:
            self._leave(sequence)
            sequence.advanced_us = now_us
        for number in [n for n, issued in self.chunks.items() if not self._is_any_live(issued.chunk)]:
            del self.chunks[number]

    def take_released(self, side: Side, event: Released) -> None:
        """A side has freed sequences: its blocks are free again."""
        for number in event.sequences:
            sequence = self.sequences.get(number)
            if sequence is None or side not in sequence.unreleased:
                continue
            sequence.unreleased.remove(side)
            self.accounts.release(number, side=side)
            if not sequence.unreleased:
                del self.sequences[number]

    def take_timeline(self, side: Side, event: Timeline) -> None:
        """An engine reports what it did: sum it up, and replay its choices."""
        self.totals.add(event, side=side)
        self.measures.take_timeline(event)
        for ran in event.ran:
            self.replay.observe(ran)

    def take_chunk_done(self, chunk: Chunk, done: ChunkDone) -> None:
        """Count a chunk that was answered."""
        self.totals.away_us += done.away_us
        self.totals.num_chunks_done += 1
        self.totals.num_prefill_tokens += chunk.num_tokens

    def take_step_times(self, done: StepDone) -> None:
        """Count a step's times."""
        step_us = done.away_us + done.turnaround_us
        self.totals.away_us += step_us
        self.totals.steps_us += step_us
        self.totals.num_steps_done += 1
        self.measures.take_step(done)

    def unit_deadlines(self, *, patience_us: int) -> list[int]:
        """Return when each chunk in flight, each sequence that the edge can step, and each release is overdue."""
        moving = [sequence for sequence in self.sequences.values() if sequence.may_move or not sequence.is_live]
        due = [sequence.advanced_us + patience_us for sequence in moving]
        return [*(issued.deadline_us for issued in self.chunks.values()), *due]

    def _leave(self, sequence: SchedulerSequence) -> None:
        sequence.state = Attempt.RELEASING
        for kept in (self._live, self._unissued, self._growing):
            kept.pop(sequence.number, None)

    def _is_any_live(self, chunk: Chunk) -> bool:
        return any(self.live_sequence(row.sequence) is not None for row in chunk.rows)


def _measures_of(event: Connected) -> Measures:
    if event.lanes is None:
        return Measures(event.edge.body, holds_body=True)
    rate = event.lanes.prefill_bytes_per_s / 1e6
    trips = RoundTrips(event.lanes.rtt_us)
    return Measures(event.edge.body, token_bytes=event.edge.token_bytes, trips=trips, lane_bytes_per_us=rate)


def _staged_tokens(event: Connected) -> int | None:
    if event.cloud is None:
        return None
    return min(side.staging_bytes // side.token_bytes for side in (event.edge, event.cloud))
