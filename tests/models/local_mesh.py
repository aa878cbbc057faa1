"""Edge and cloud of a model in one process, without lanes or services: what a mesh computes, in every order.

Requests are served by units of mixed rows: a unit takes one row of each live request, the next chunk of its prompt or
its newest token. Up to `depth` units are in flight, so the head of a chunk may run before the tail of the one before.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor

from edgeweave.interleave.nouns import GREEDY, KvCapacity, Row, Sampling, Segment
from edgeweave.interleave.split import Split
from edgeweave.model import CloudModel, EdgeModel, Sampler, load_cloud, load_edge
from models.tiny import tiny_model


@dataclass(frozen=True)
class Mix:
    """How requests share units."""

    max_live: int  # requests served at once; the next joins when one leaves
    depth: int  # units whose head may have run before a tail
    segment_layers: int  # layers of the body that run without a break


@dataclass(eq=False)
class Live:
    """A request that is served. `issued` tokens of `tokens` have entered a head."""

    sequence: int
    prompt: Sequence[int]
    num_output_tokens: int
    sampling: Sampling = GREEDY
    tokens: list[int] = field(default_factory=list)
    issued: int = 0

    def __post_init__(self) -> None:
        self.tokens = list(self.prompt)

    @property
    def output(self) -> list[int]:
        return self.tokens[len(self.prompt) :]

    @property
    def is_finished(self) -> bool:
        return len(self.output) == self.num_output_tokens


@dataclass(frozen=True)
class Unit:
    """Rows whose head has run; `final` are those that end in the newest token of their request."""

    rows: list[Row]
    lives: list[Live]
    final: list[int]
    hidden: Tensor


class LocalMesh:
    """One edge and, unless the edge holds all layers, one cloud."""

    def __init__(self, edge: EdgeModel, cloud: CloudModel | None) -> None:
        self.edge = edge
        self.cloud = cloud
        self.sampler = Sampler()

    @classmethod
    def load(
        cls,
        architecture: str,
        split: Split | None,
        *,
        kv: KvCapacity,
        pack_from: int | None = None,
        runs_directly: bool = True,
    ) -> "LocalMesh":
        """Load both sides of the tiny model of `architecture`."""
        folder = tiny_model(architecture)
        edge = load_edge(folder, split=split, kv=kv, pack_from=pack_from, runs_directly=runs_directly)
        if split is None:
            return cls(edge, None)
        return cls(edge, load_cloud(folder, split=split, kv=kv, pack_from=pack_from, runs_directly=runs_directly))

    def answer(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        num_output_tokens: int,
        chunk_tokens: int,
        mix: Mix,
        samplings: Sequence[Sampling] | None = None,
    ) -> list[list[int]]:
        """Return the output of each of `prompts`; all KV is free afterwards."""
        samplings = samplings or [GREEDY] * len(prompts)
        requests = [
            Live(number, prompt, num_output_tokens, sampling)
            for number, (prompt, sampling) in enumerate(zip(prompts, samplings, strict=True), start=1)
        ]
        away: deque[Unit] = deque()
        while not all(request.is_finished for request in requests):
            live = [request for request in requests if not request.is_finished][: mix.max_live]
            unit = self._head(live, chunk_tokens)
            if unit:
                away.append(unit)
            if unit is None or len(away) == mix.depth:
                self._finish(away.popleft(), mix.segment_layers)
        return [request.output for request in requests]

    def _head(self, live: Sequence[Live], chunk_tokens: int) -> Unit | None:
        ready = [request for request in live if request.issued < len(request.tokens)]
        if not ready:
            return None
        rows, token_ids, final = [], [], []
        for index, request in enumerate(ready):
            start, stop = request.issued, min(request.issued + chunk_tokens, len(request.tokens))
            rows.append(Row(request.sequence, start, stop))
            token_ids += request.tokens[start:stop]
            final += [index] if stop == len(request.tokens) else []
            request.issued = stop
        return Unit(rows, ready, final, self.edge.run_head(rows, token_ids))

    def _finish(self, unit: Unit, segment_layers: int) -> None:
        hidden = self._body(unit, segment_layers) if self.cloud else unit.hidden
        logits = self.edge.run_tail(unit.rows, hidden, final=unit.final)
        sampled = [unit.lives[index] for index in unit.final]
        drawn = self.sampler.sample(logits, [r.sampling for r in sampled], [len(r.output) for r in sampled])
        for request, token_id in zip(sampled, drawn, strict=True):
            request.tokens.append(token_id)
            if request.is_finished:
                self._free(request.sequence)

    def _body(self, unit: Unit, segment_layers: int) -> Tensor:
        """Run the body on a copy that went through bytes, as it does over a lane."""
        assert self.cloud
        body = self.cloud.body
        hidden = self.cloud.hidden_from(bytearray(self.edge.payload_of(unit.hidden)), len(unit.hidden))
        for start in range(body.start, body.stop, segment_layers):
            segment = Segment(start, min(start + segment_layers, body.stop))
            hidden = self.cloud.run_segment(unit.rows, hidden, segment)
        return self.edge.hidden_from(bytearray(self.cloud.payload_of(hidden)), len(hidden))

    def _free(self, sequence: int) -> None:
        for side in (self.edge, self.cloud):
            if side:
                side.free([sequence])
