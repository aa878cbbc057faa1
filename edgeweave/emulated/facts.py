"""What an emulated model is, beside the times of its profile.

Knows the profile, the split and how they become a fingerprint. Does not know what is computed.
"""

import hashlib
import json
from dataclasses import asdict, dataclass

from edgeweave.errors import InvalidSettingsError
from edgeweave.interleave.nouns import DType, Fingerprint, Segment
from edgeweave.interleave.protocol import PROTOCOL
from edgeweave.interleave.split import Split
from edgeweave.sim.profile import Profile

VOCAB_SIZE = 1 << 17
"""Tokens of an emulated model. None of them ends an output."""
WORD_BYTES = 8
_DIGEST_BYTES = 2 * WORD_BYTES


@dataclass(frozen=True, slots=True)
class EmulatedFacts:
    """A profile, cut as `split` says; all layers in one place where that is `None`.

    Hidden states go as bfloat16, two bytes an element, whatever the bytes are.
    """

    profile: Profile
    split: Split | None

    def __post_init__(self) -> None:
        """Raise `InvalidSettingsError` where hidden states have no room for a digest, `SplitError` for the split."""
        num_bytes = self.profile.token_bytes
        if num_bytes < _DIGEST_BYTES or num_bytes % WORD_BYTES:
            raise InvalidSettingsError(
                f"profile {self.profile.name}: token_bytes {num_bytes} has to be a multiple of {WORD_BYTES} "
                f"from {_DIGEST_BYTES} on, to hold the digest of an emulated engine"
            )
        _ = self.body

    @property
    def body(self) -> Segment:
        """The layers of the cloud, empty where one place holds all."""
        num_layers = self.profile.num_layers
        return self.split.body(num_layers) if self.split else Segment(num_layers, num_layers)

    @property
    def words_per_row(self) -> int:
        """Words of a row of hidden state; where none of them travels, a row is a digest and nothing else."""
        return (self.profile.token_bytes if self.split else _DIGEST_BYTES) // WORD_BYTES

    @property
    def fingerprint(self) -> Fingerprint:
        """What both sides compare: name and numbers of the profile stand for model and weights."""
        numbers = asdict(self.profile) | {"head_layers": None, "tail_layers": None}  # told on their own
        digest = hashlib.sha256(json.dumps(numbers, sort_keys=True).encode()).digest()
        return Fingerprint(
            model=digest,
            weights=digest,
            head_layers=self.split.head_layers if self.split else 0,
            tail_layers=self.split.tail_layers if self.split else 0,
            dtype=DType.BFLOAT16,
            protocol=PROTOCOL,
        )
