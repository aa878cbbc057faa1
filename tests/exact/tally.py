"""What the exactness tests compared."""

from dataclasses import dataclass


@dataclass
class Tally:
    """Tokens compared, and outputs that differ at a place where the reference all but tied."""

    num_tokens: int = 0
    num_excused: int = 0
