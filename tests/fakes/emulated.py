"""An emulated mesh without streams: both parts, and hidden states handed from one to the other.

A test says how prompts are cut into chunks, chunks into rows and the body into segments, and may tamper with what goes
from part to part.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from edgeweave.emulated.cloud import EmulatedCloud
from edgeweave.emulated.edge import EmulatedEdge
from edgeweave.emulated.facts import EmulatedFacts
from edgeweave.emulated.mixing import Words
from edgeweave.interleave.nouns import GREEDY, KvCapacity, Row, Segment
from edgeweave.interleave.split import Split
from edgeweave.sim.profile import LayerTimes, Profile

NUM_LAYERS = 8
SMALL = Profile(
    name="small",
    num_layers=NUM_LAYERS,
    head_layers=1,
    tail_layers=1,
    edge=LayerTimes(10, 1, 20, 1),
    cloud=LayerTimes(30, 1, 40, 1),
    logits_row_us=5,
    unit_us=100,
    token_bytes=32,
)
ONE_EACH = Split(1, 1)
KV = KvCapacity(block_tokens=4, num_blocks=256)
Segments = Sequence[Segment]
Tamper = Callable[[Words], Words]


def intact(hidden: Words) -> Words:
    """Hand hidden states on as they are."""
    return hidden


@dataclass
class HandMesh:
    """Both parts under a split; all layers at the edge without one."""

    split: Split | None = ONE_EACH
    kv: KvCapacity = KV
    edge: EmulatedEdge = field(init=False)
    cloud: EmulatedCloud = field(init=False)

    def __post_init__(self) -> None:
        facts = EmulatedFacts(SMALL, self.split)
        self.edge, self.cloud = EmulatedEdge(facts, self.kv), EmulatedCloud(facts, self.kv)

    def run(
        self,
        rows: Sequence[Row],
        token_ids: Sequence[int],
        *,
        segments: Segments | None = None,
        up: Tamper = intact,
        cloud_rows: Sequence[Row] | None = None,
    ) -> list[int]:
        """Run one chunk or step through all layers; return the token after each row.

        `up` tampers with what the cloud gets, `cloud_rows` are the rows as it has them.
        """
        hidden = self.edge.run_head(rows, token_ids)
        body = self.edge.body
        for segment in [body][: body.num_layers] if segments is None else segments:
            hidden = self.cloud.run_segment(cloud_rows or rows, self._crossed(up(hidden)), segment)
            up = intact
        final = range(len(rows))
        return self.edge.sample(
            self.edge.run_tail(rows, hidden, final=final), [GREEDY] * len(rows), [row.stop for row in rows]
        )

    def decode(self, sequence: int, token: int, *, start: int, num_tokens: int) -> list[int]:
        """Return `token` and what follows it, `num_tokens` in all, one step at a time from position `start` on."""
        output = [token]
        for position in range(start, start + num_tokens - 1):
            output += self.run([Row(sequence, position, position + 1)], output[-1:])
        return output

    def _crossed(self, hidden: Words) -> Words:
        return self.cloud.hidden_from(bytes(self.edge.payload_of(hidden)), len(hidden))
