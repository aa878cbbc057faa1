"""The emulated cloud's share of a model: the body."""

from collections.abc import Sequence

from edgeweave.emulated.mixing import Words
from edgeweave.emulated.side import EmulatedSide
from edgeweave.interleave.nouns import Row, Segment


class EmulatedCloud(EmulatedSide):
    """The body."""

    def run_segment(self, rows: Sequence[Row], hidden: Words, segment: Segment) -> Words:
        """Pass `hidden` [tokens, words] through the layers of `segment`, part of the body, and return it."""
        if not self.body.start <= segment.start < segment.stop <= self.body.stop:
            raise ValueError(f"{segment} is not part of the body {self.body}")
        hidden[:, :2] = self._pass_layers(self._sums.begin(rows), hidden[:, :2].copy(), segment)
        return hidden
