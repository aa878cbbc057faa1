"""The greedy output of an emulated model, computed in one go: no engine, no lane, no numpy.

The definition, one token after the other in plain integers. Chunks, segments, splits and batches do not occur in it.
"""

from collections.abc import Iterator, Sequence

from edgeweave.emulated.facts import VOCAB_SIZE
from edgeweave.emulated.layers import LayerNumbers
from edgeweave.emulated.mixing import MASK, mix, place


def reference_tokens(prompt_ids: Sequence[int], num_tokens: int, *, num_layers: int) -> list[int]:
    """Return `num_tokens` greedy tokens after `prompt_ids`, at least one id, of a model of `num_layers`."""
    if not prompt_ids:
        raise ValueError("a prompt has at least one token")
    return [token for _, token in zip(range(num_tokens), _outputs(prompt_ids, num_layers), strict=False)]


def _outputs(prompt_ids: Sequence[int], num_layers: int) -> Iterator[int]:
    """Yield output tokens without end."""
    numbers = LayerNumbers.of(num_layers)
    product, offset, gain = numbers.products[-1], numbers.offsets[-1], sum(numbers.gains)
    sum_of_ids = sum_of_z = sum_of_ends = position = 0
    waiting = list(reversed(prompt_ids))
    while True:
        here = place(position)
        sum_of_ids += mix(waiting.pop() + here)
        y = mix(sum_of_ids)
        sum_of_z += mix(y + here)
        u, v = y * product + offset, gain * sum_of_z * product
        sum_of_ends = (sum_of_ends + mix(u + mix(v + here))) & MASK
        position += 1
        if not waiting:
            token = mix(sum_of_ends) % VOCAB_SIZE
            yield token
            waiting.append(token)
