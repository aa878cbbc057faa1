"""The units of a chunk and of a step, gathered from the reports of both engines.

Knows which units belong together and when all are there. Does not know clocks, requests or spans.
"""

from dataclasses import dataclass, field

from edgeweave.interleave.nouns import Chunk, Stage, UnitRan

_HEADS, _SEGMENTS = (Stage.HEAD, Stage.FUSED_HEAD), (Stage.SEGMENT, Stage.FUSED_SEGMENT)


@dataclass(slots=True)
class ChunkParts:
    """Units of one chunk: pieces of its head and tail on the edge, segments in the cloud. `error` says what failed."""

    chunk: Chunk
    issued_us: int
    answered_us: int | None = None
    heads: list[UnitRan] = field(default_factory=list)
    segments: list[UnitRan] = field(default_factory=list)
    tails: list[UnitRan] = field(default_factory=list)
    error: str | None = None

    def add(self, ran: UnitRan) -> None:
        """Take a unit of this chunk."""
        if ran.stage in _HEADS:
            self.heads.append(ran)
        elif ran.stage in _SEGMENTS:
            self.segments.append(ran)
        else:
            self.tails.append(ran)

    @property
    def is_complete(self) -> bool:
        """Whether it is answered, and every layer of its body and every row of both ends was told of."""
        num_layers = sum(segment.num_layers for segment in self.chunk.segments)
        ends = (sum(ran.stop - ran.start for ran in units) for units in (self.heads, self.tails))
        ran_layers = sum(ran.stop - ran.start for ran in self.segments)
        has_all = ran_layers == num_layers and all(rows == self.chunk.num_tokens for rows in ends)
        return self.answered_us is not None and has_all


@dataclass(slots=True)
class StepParts:
    """Units of one step: the turnaround that it left by, its body, the turnaround that it came back to.

    Its body is one unit, or two where it rode in a chunk: up to the chunk's layer, and from there. `answered_us` is
    when the scheduler heard of it, `error` what failed.
    """

    number: int
    launch: UnitRan | None = None
    bodies: list[UnitRan] = field(default_factory=list)
    back: UnitRan | None = None
    answered_us: int | None = None
    error: str | None = None

    def is_complete(self, *, holds_body: bool) -> bool:
        """Whether all of it was told of; where the edge holds all layers there is no body elsewhere."""
        has_body = holds_body or any(ran.stage is not Stage.BOARDING for ran in self.bodies)
        return self.answered_us is not None and self.launch is not None and self.back is not None and has_body
