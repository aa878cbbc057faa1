"""Where a model is cut.

Knows how many layers the edge keeps at each end. Does not know the model: `body` takes its number of layers.
"""

from dataclasses import dataclass

from edgeweave.errors import SplitError
from edgeweave.interleave.nouns import Segment


@dataclass(frozen=True, slots=True)
class Split:
    """Layers that the edge keeps: the first `head_layers` and the last `tail_layers`; the cloud runs the rest.

    Each end keeps at least one layer: a hidden state before the first layer is a row of the embedding table, and
    one after the last layer is one matrix product away from the next token.
    """

    head_layers: int = 1
    tail_layers: int = 1

    def __post_init__(self) -> None:
        """Raise `SplitError` where an end would keep no layer."""
        if min(self.head_layers, self.tail_layers) < 1:
            raise SplitError(f"split {self} leaves the edge an end without layers; give each end at least 1")

    def __str__(self) -> str:
        return f"{self.head_layers}:{self.tail_layers}"

    @classmethod
    def parse(cls, text: str) -> "Split":
        """Return the split that `text` such as "1:1" (head:tail) says; raise `SplitError` where it says none."""
        head, colon, tail = text.strip().partition(":")
        if not (colon and head.isdecimal() and tail.isdecimal()):
            raise SplitError(f'split "{text}" is not of the form head:tail; give two numbers of layers, such as 1:1')
        return cls(int(head), int(tail))

    def body(self, num_layers: int) -> Segment:
        """Return the layers of the cloud in a model of `num_layers`; raise `SplitError` where none is left."""
        body = Segment(self.head_layers, num_layers - self.tail_layers)
        if body.num_layers < 1:
            raise SplitError(
                f"split {self} leaves the cloud no layer of a model of {num_layers}; "
                f"head and tail together may have at most {num_layers - 1}"
            )
        return body
