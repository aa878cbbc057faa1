"""What the exactness tests compared."""

from dataclasses import dataclass


@dataclass
class Tally:
    """Tokens compared, and outputs that differ where the reference's two best logits are as good as equal."""

    num_tokens: int = 0
    num_excused: int = 0
