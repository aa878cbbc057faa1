"""What lies around the layers of a model of the common shape, run without the model's own forward.

Embedding, rotary positions, final norm and output head, each called once a unit. The model's own forward does the same
and a good deal more that serves training, other masks and other caches; in a decode step that is a twentieth of the
time.

Knows modules of a model. Does not know whether they may be called like that (`direct`), nor rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from edgeweave.model.layers import LayerStack
from edgeweave.model.tree import ModelTree

_AROUND = frozenset({"embed_tokens", "layers", "norm", "rotary_emb"})


@dataclass(frozen=True, slots=True)
class Spine:
    """The modules around the layers, and the layers of this side by their numbers."""

    embedding: nn.Module
    rotary: nn.Module
    norm: nn.Module
    output: nn.Module
    layers: Mapping[int, nn.Module]

    def embed(self, token_ids: Tensor) -> Tensor:
        """Return hidden states [1, tokens, hidden] of `token_ids` [1, tokens]."""
        hidden: Tensor = self.embedding(token_ids)
        return hidden

    def pass_layers(self, hidden: Tensor, positions: Tensor, layers: Sequence[int]) -> Tensor:
        """Run `layers` over `hidden` [1, tokens, hidden] at `positions` [1, tokens]; return the same shape."""
        turned = self.rotary(hidden, position_ids=positions)
        for index in layers:
            hidden = self.layers[index].forward(hidden, position_embeddings=turned)
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        """Return logits [1, tokens, vocab] of `hidden` [1, tokens, hidden]."""
        logits: Tensor = self.output(self.norm(hidden))
        return logits


def spine_of(tree: ModelTree, stack: LayerStack) -> Spine | None:
    """Return the spine of `tree` with the layers of `stack`, `None` where it has other modules than the common ones."""
    base: nn.Module = tree.model.base_model
    children = dict(base.named_children())
    outside = dict(tree.model.named_children())
    if children.keys() != _AROUND or tree.layers_owner is not base or len(outside) != 2:  # noqa: PLR2004  base and head
        return None
    output = next(child for child in outside.values() if child is not base)
    layers = {index: stack.layer(index) for index in stack.kept}
    return Spine(children["embed_tokens"], children["rotary_emb"], children["norm"], output, layers)
