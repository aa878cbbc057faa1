"""The emulated edge's share of a model: embedding, head, tail and output head.

Without a split it holds all layers: the head is the whole model and the tail no layer.
"""

from collections.abc import Sequence

import numpy as np

from edgeweave.emulated.facts import VOCAB_SIZE
from edgeweave.emulated.mixing import Words, mix, mix_words, places
from edgeweave.emulated.side import EmulatedSide
from edgeweave.interleave.nouns import Row, Sampling, Segment


class EmulatedEdge(EmulatedSide):
    """Embedding, head, tail, output head and sampler."""

    @property
    def vocab_size(self) -> int:
        """Tokens there are."""
        return VOCAB_SIZE

    @property
    def max_positions(self) -> int | None:
        """The longest sequence in tokens: there is no limit."""
        return None

    def run_head(self, rows: Sequence[Row], token_ids: Sequence[int]) -> Words:
        """Embed the tokens of `rows`, whose ids come in row order, and pass them through the head.

        Returns [tokens, words].
        """
        tokens = self._sums.begin(rows)
        ids = mix_words(np.array(token_ids, dtype=np.uint64) + places(tokens.positions))
        y = mix_words(self._sums.pass_by(tokens, ids, column=self._tokens_column))
        digests = np.stack((y, np.zeros_like(y)), axis=1)
        hidden = self.zeros(len(y))
        hidden[:, :2] = self._pass_layers(tokens, digests, Segment(0, self.body.start))
        return hidden

    def run_tail(self, rows: Sequence[Row], hidden: Words, *, final: Sequence[int]) -> Words:
        """Pass `hidden` [tokens, words] of all `rows` through the tail.

        Returns what stands for logits: a number for the last token of `rows[i]`, for each i in `final`. It depends on
        every row of the sequence.
        """
        tokens = self._sums.begin(rows)
        digests = self._pass_layers(
            tokens, hidden[:, :2].copy(), Segment(self.body.stop, self.facts.profile.num_layers)
        )
        ends = mix_words(digests[:, 0] + mix_words(digests[:, 1] + places(tokens.positions)))
        sums = self._sums.pass_by(tokens, ends, column=self._ends_column)
        return mix_words(tokens.at_end(sums)[np.array(final, dtype=np.intp)])

    def sample(self, logits: Words, samplings: Sequence[Sampling], indices: Sequence[int]) -> list[int]:
        """Return a token id for each number in `logits`.

        Without temperature it depends on the number alone; with one also on the request's seed and the index of the
        token in its output.
        """
        numbers: list[int] = logits.tolist()
        return [
            (mix(number ^ mix(mix(sampling.seed) + index)) if sampling.temperature > 0 else number) % VOCAB_SIZE
            for number, sampling, index in zip(numbers, samplings, indices, strict=True)
        ]
