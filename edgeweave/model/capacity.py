"""How many KV blocks fit into a number of bytes."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from edgeweave.errors import InvalidSettingsError
from edgeweave.interleave.nouns import KvCapacity, Segment
from edgeweave.model.probe_layer import LayerShape


@dataclass(frozen=True, slots=True)
class KvMemory:
    """Memory for keys and values: bytes, and tokens of one block."""

    num_bytes: int
    block_tokens: int = 16

    def capacity(self, layers: Iterable[LayerShape], *, dtype: torch.dtype) -> KvCapacity:
        """Return the blocks that fit, for `layers` with keys and values of `dtype`.

        Raises `InvalidSettingsError` where not one block fits.
        """
        token_bytes = dtype.itemsize * sum(layer.kv_heads * (layer.key_dim + layer.value_dim) for layer in layers)
        block_bytes = self.block_tokens * token_bytes
        if self.num_bytes < block_bytes:
            raise InvalidSettingsError(
                f"{self.num_bytes} bytes hold no KV block of {block_bytes} bytes; give more KV memory"
            )
        return KvCapacity(self.block_tokens, self.num_bytes // block_bytes)


def kept_layers(body: Segment, num_layers: int, *, edge: bool) -> list[Segment]:
    """Return the layers that the edge, or the cloud, keeps of a model whose cloud layers are `body`."""
    return [Segment(0, body.start), Segment(body.stop, num_layers)] if edge else [body]
