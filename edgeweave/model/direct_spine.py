"""Whether a part does without the model's own forward, and the proof.

Where all layers of a part run directly, its units are run once by the model's own forward and once along the spine,
over the same few tokens. The spine stays where both give the same, and the forward used no operation that could make
them differ elsewhere: none but those that the spine uses, those without a threshold, and those that only make tensors.

Knows parts and spines. Knows no architecture by name.
"""

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor

from edgeweave.interleave.nouns import Segment
from edgeweave.model.part import Part
from edgeweave.model.sameness import SMOOTH, Operations, is_near
from edgeweave.model.spine import Spine
from edgeweave.model.trial import trial_unit

_MAKING: Final = frozenset({"arange", "empty", "empty_like", "select", "index", "expand", "lift_fresh"})


@torch.inference_mode()
def take_spine(part: Part, spine: Spine | None, kept: Sequence[Segment], *, with_outside: bool) -> bool:
    """Let `part`, all of whose layers run directly, use `spine` where that is the same; return whether it does.

    `kept` are its layers, in two segments, head and tail, where it holds what is around them too.
    """
    if spine is None:
        return False
    by_forward, own = _outputs(part, kept, with_outside=with_outside)
    part.spine = spine
    along, used = _outputs(part, kept, with_outside=with_outside)
    part.cache.free_all()
    is_same = all(is_near(*pair) for pair in zip(along, by_forward, strict=True))
    if not is_same or not own.seen <= used.seen | SMOOTH | _MAKING:
        part.spine = None
    return part.spine is not None


def _outputs(part: Part, kept: Sequence[Segment], *, with_outside: bool) -> tuple[list[Tensor], Operations]:
    """Return what each kind of unit gives for a few tokens, and the operations that it took."""
    rows, hidden = trial_unit(part, seed=0)
    with Operations() as operations:
        if not with_outside:
            return [part.pass_through(rows, hidden, kept[0])], operations
        head, tail = kept
        first = part.embed(rows, range(len(hidden)), head)
        return [first, part.finish(rows, hidden, tail, final=[0])], operations
