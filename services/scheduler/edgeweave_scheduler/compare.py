"""Whether two engines make one mesh: same model, weights, split, dtype and protocol; staging for what will be away.

A pure comparison. Each difference is told with both values.
"""

from edgeweave.errors import MismatchError
from edgeweave.interleave.limits import Limits
from edgeweave.interleave.nouns import Attached, Fingerprint
from edgeweave.interleave.protocol import PROTOCOL

ADVICE = {
    "model": "give both sides the same model folder",
    "weights": "give both sides the same checkpoint",
    "head_layers": "set the same split on both sides",
    "tail_layers": "set the same split on both sides",
    "dtype": "set the same dtype on both sides",
    "protocol": "run the same version of edgeweave on both sides",
}


def check_sides(edge: Attached, cloud: Attached | None, *, limits: Limits, max_prefills: int) -> None:
    """Raise MismatchError if the engines do not fit each other or this scheduler."""
    if edge.fingerprint.protocol != PROTOCOL:
        raise MismatchError(
            f"the edge engine speaks protocol {edge.fingerprint.protocol} and this scheduler {PROTOCOL}; "
            f"{ADVICE['protocol']}"
        )
    if cloud is None:
        return
    _check_fingerprints(edge.fingerprint, cloud.fingerprint)
    needed = limits.staged_tokens(max_prefills=max_prefills) * edge.token_bytes
    for name, side in (("edge", edge), ("cloud", cloud)):
        if side.staging_bytes < needed:
            raise MismatchError(
                f"the {name} engine stages {side.staging_bytes} bytes and {max_prefills + 1} chunks of "
                f"{limits.prefill_budget} tokens need {needed}; raise its staging_bytes or lower max_prefill_tokens"
            )


def _check_fingerprints(edge: Fingerprint, cloud: Fingerprint) -> None:
    for name, advice in ADVICE.items():
        ours, theirs = getattr(edge, name), getattr(cloud, name)
        if ours != theirs:
            raise MismatchError(
                f"edge and cloud differ in {name}: edge has {_shown(ours)}, cloud has {_shown(theirs)}; {advice}"
            )


def _shown(value: object) -> str:
    return value.hex()[:16] if isinstance(value, bytes) else str(getattr(value, "name", value)).lower()
