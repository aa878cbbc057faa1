"""Our engine in one place, driven as its compute thread drives it: `python -m contest.edge_model FOLDER`.

Makes the calls of the edge engine's runner: prefill in pieces, then turnarounds of tail, draws and head. What a mesh
adds to them is the matter of `edge_mesh`.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from contest.turns import Prompts, Streams
from edgeweave.engine.heap import keep_freed_memory
from edgeweave.interleave.nouns import GREEDY, Row
from edgeweave.interleave.rows import live_rows, rows_between
from edgeweave.model import EdgeModel, KvMemory, load_edge, use_threads

KV_BYTES = 1 << 30
"""What the edge engine's settings give by default."""


def main(argv: Sequence[str]) -> None:
    """Take turns until there are no more."""
    streams = Streams.taken()
    given = parser().parse_args(argv)
    player = EdgePlayer(loaded(given), piece_tokens=given.piece_tokens)
    streams.serve_player(player, settings=settings_of(given))


def parser() -> argparse.ArgumentParser:
    """Return what reads the folder of the model, and how it is to be computed."""
    words = argparse.ArgumentParser(description="Our engine in one place.")
    words.add_argument("folder", type=Path)
    words.add_argument("--weights-dtype", help="element type of weights, where it is another than that of the rest")
    words.add_argument("--piece-tokens", type=int, required=True, help="tokens of a prefill that run as one unit")
    return words


def loaded(given: argparse.Namespace) -> EdgeModel:
    """Return all layers of the model, in float32 on one thread."""
    use_threads(1)
    kv = KvMemory(KV_BYTES)
    model = load_edge(given.folder, split=None, kv=kv, weights_dtype=given.weights_dtype)
    keep_freed_memory()
    return model


def settings_of(given: argparse.Namespace) -> dict[str, str]:
    """Return what a reader has to know to do the same."""
    return {
        "torch": torch.__version__,
        "dtype": "float32",
        "weights": given.weights_dtype or "float32",
        "prefill in pieces of": f"{given.piece_tokens} tokens",
        "calls": "head, tail and draws of the compute thread, without scheduler and transport",
    }


class EdgePlayer:
    """Plays on a model that is loaded."""

    def __init__(self, model: EdgeModel, *, piece_tokens: int) -> None:
        self._model = model
        self._piece_tokens = piece_tokens

    def play(self, prompts: Prompts, *, num_tokens: int) -> tuple[list[list[int]], float]:
        """Return the outputs, and when all had their first token."""
        outputs = [[token] for token in self.prefill(prompts)]
        first_s = time.perf_counter()
        batch = DecodingBatch(self._model, [len(prompt) for prompt in prompts], [output[0] for output in outputs])
        for _ in range(num_tokens - 1):
            for output, token in zip(outputs, batch.step(), strict=True):
                output.append(token)
        self._model.free(range(len(prompts)))
        return outputs, first_s

    def prefill(self, prompts: Prompts) -> list[int]:
        """Take in one chunk of all `prompts`; return the first token of each output."""
        rows = tuple(Row(number, 0, len(prompt)) for number, prompt in enumerate(prompts))
        num_tokens = sum(row.num_tokens for row in rows)
        hidden = self._model.zeros(num_tokens)  # [tokens, hidden]
        starts = range(0, num_tokens, self._piece_tokens)
        spans = [(start, min(start + self._piece_tokens, num_tokens)) for start in starts]
        for start, stop in spans:
            hidden[start:stop] = self._head(rows_between(rows, start=start, stop=stop), prompts)
        return [token for span in spans for token in self._tail(rows, hidden, span, prompts)]

    def _head(self, rows: tuple[Row, ...], prompts: Prompts) -> Tensor:
        live = (True,) * len(rows)
        token_ids = [token for row in rows for token in prompts[row.sequence][row.start : row.stop]]
        return self._model.spread(self._model.run_head(live_rows(rows, live), token_ids), rows, live)

    def _tail(self, rows: tuple[Row, ...], hidden: Tensor, span: tuple[int, int], prompts: Prompts) -> list[int]:
        """Run the tail of a piece; return the tokens of the prompts that end in it."""
        start, stop = span
        piece = rows_between(rows, start=start, stop=stop)
        live = (True,) * len(piece)
        final = [index for index, row in enumerate(piece) if row.stop == len(prompts[row.sequence])]
        back = self._model.live_of(hidden[start:stop], piece, live)
        logits = self._model.run_tail(live_rows(piece, live), back, final=final)
        return self._model.sample(logits, [GREEDY] * len(final), [0] * len(final))


class DecodingBatch:
    """Sequences that decode together, from the first token of each on."""

    def __init__(self, model: EdgeModel, prompt_tokens: Sequence[int], token_ids: Sequence[int]) -> None:
        self._model = model
        self._rows = tuple(Row(number, stop, stop + 1) for number, stop in enumerate(prompt_tokens))
        self._token_ids = list(token_ids)
        self._index = 1

    def step(self) -> list[int]:
        """Run head and tail of one step, and draw; return a token for each sequence."""
        rows, model = self._rows, self._model
        live = (True,) * len(rows)
        hidden = model.spread(model.run_head(live_rows(rows, live), self._token_ids), rows, live)
        final = range(len(rows))
        logits = model.run_tail(live_rows(rows, live), model.live_of(hidden, rows, live), final=final)
        self._token_ids = model.sample(logits, [GREEDY for _ in final], [self._index for _ in final])
        self._rows = tuple(Row(row.sequence, row.stop, row.stop + 1) for row in rows)
        self._index += 1
        return self._token_ids


if __name__ == "__main__":
    main(sys.argv[1:])
