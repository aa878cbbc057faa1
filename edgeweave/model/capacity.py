"""How many KV blocks fit into a number of bytes."""

from pathlib import Path

from edgeweave.errors import InvalidSettingsError
from edgeweave.interleave.nouns import KvCapacity, Segment
from edgeweave.interleave.split import Split
from edgeweave.model.dtypes import dtype_of, torch_dtype
from edgeweave.model.probe import probe_layers
from edgeweave.model.tree import build_tree


def kept_layers(body: Segment, num_layers: int, *, edge: bool) -> list[Segment]:
    """Return the layers that the edge, or the cloud, keeps of a model whose cloud layers are `body`."""
    return [Segment(0, body.start), Segment(body.stop, num_layers)] if edge else [body]


def kv_capacity_for(
    folder: Path, *, split: Split | None, edge: bool, kv_bytes: int, dtype: str = "float32", block_tokens: int = 16
) -> KvCapacity:
    """Return how many blocks of `block_tokens` the edge, or the cloud, has in `kv_bytes` of memory.

    Reads the configuration in `folder`, no weights. Raises `InvalidSettingsError` where not one block fits, and what
    `load_edge` raises for the folder and the split.
    """
    element = torch_dtype(dtype_of(dtype))
    tree = build_tree(folder, dtype=element)
    num_layers = len(tree.layers)
    body = split.body(num_layers) if split else Segment(num_layers, num_layers)
    shapes = probe_layers(tree)
    kept = [
        shape for segment in kept_layers(body, num_layers, edge=edge) for shape in shapes[segment.start : segment.stop]
    ]
    block_bytes = block_tokens * element.itemsize * sum(s.kv_heads * (s.key_dim + s.value_dim) for s in kept)
    if kv_bytes < block_bytes:
        raise InvalidSettingsError(f"{kv_bytes} bytes hold no KV block of {block_bytes} bytes; give more KV memory")
    return KvCapacity(block_tokens, kv_bytes // block_bytes)
