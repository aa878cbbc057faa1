"""How large the layers of a model are, from its `config.json`: what a token computes, what a step reads.

Knows decoder layers with grouped attention and a gated MLP, dense or with experts. Does not read weights, and refuses
what it would count wrongly.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeweave.errors import ModelError, ModelNotFoundError

VALUE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
_UNCOUNTED = ("kv_lora_rank", "quantization_config")
"""Keys of layers that this arithmetic does not describe: compressed attention, packed weights."""
_COUNTED_LAYERS = {"full_attention", "sliding_attention"}


@dataclass(frozen=True, slots=True)
class ModelSize:
    """Sizes of one decoder layer, and of the whole. `num_experts` is 1 for a dense MLP of `mlp_size`."""

    name: str
    num_layers: int
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_size: int
    mlp_size: int
    vocab_size: int
    value_bytes: int
    num_experts: int = 1
    experts_per_token: int = 1

    @classmethod
    def of_folder(cls, folder: Path) -> "ModelSize":
        """Read `config.json` of a model folder.

        Raises:
            ModelNotFoundError: there is no such file.
            ModelError: it is not JSON, lacks a size, or describes layers that are not counted here.
        """
        config = _read(folder / "config.json")
        uncounted = [key for key in _UNCOUNTED if config.get(key)]
        uncounted += sorted(set(config.get("layer_types") or ()) - _COUNTED_LAYERS)
        if uncounted:
            raise ModelError(f"{folder}: layers with {uncounted[0]} are not counted; give their times with --profile")
        return _sizes(config, folder)

    @property
    def attention_weights(self) -> int:
        """Weights of one layer's projections."""
        return 2 * self.hidden_size * self.head_size * (self.num_heads + self.num_kv_heads)

    @property
    def expert_weights(self) -> int:
        """Weights of one expert, or of the dense MLP: gate, up and down."""
        return 3 * self.hidden_size * self.mlp_size

    @property
    def layer_bytes(self) -> int:
        """Memory of one layer."""
        return (self.attention_weights + self.num_experts * self.expert_weights) * self.value_bytes

    @property
    def logits_bytes(self) -> int:
        """Memory of the output head."""
        return self.hidden_size * self.vocab_size * self.value_bytes

    @property
    def kv_token_bytes(self) -> int:
        """Keys and values of one token in one layer."""
        return 2 * self.num_kv_heads * self.head_size * self.value_bytes

    def step_bytes(self, num_rows: int) -> float:
        """Return the weights that a step of `num_rows` reads of a layer: of experts, those that some row is sent to."""
        missed = (1 - self.experts_per_token / self.num_experts) ** num_rows
        read = self.attention_weights + self.num_experts * (1 - missed) * self.expert_weights
        return read * self.value_bytes

    def token_flops(self, context_tokens: float) -> float:
        """Return the operations of one token in one layer, after so many tokens."""
        weights = self.attention_weights + self.experts_per_token * self.expert_weights
        return 2 * weights + 4 * self.num_heads * self.head_size * context_tokens


def _read(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise ModelNotFoundError(f"{path} cannot be read; give the folder of a model") from None
    except ValueError as error:
        raise ModelError(f"{path} is not JSON ({error}); fetch it again") from None
    if not isinstance(config, dict):
        raise ModelError(f"{path} holds no JSON object; fetch it again")
    return {**config, **(config.get("text_config") or {})}


def _sizes(config: dict[str, Any], folder: Path) -> ModelSize:
    def size(*keys: str) -> int:
        value = next((config[key] for key in keys if config.get(key) is not None), None)
        if not isinstance(value, int) or value < 1:
            raise ModelError(f"{folder}/config.json: {keys[0]} is {value!r}; a number of at least 1 is needed")
        return value

    def size_or(default: int, *keys: str) -> int:
        return size(*keys) if any(config.get(key) is not None for key in keys) else default

    num_heads, hidden_size = size("num_attention_heads"), size("hidden_size")
    num_experts = size_or(1, "num_experts", "num_local_experts", "n_routed_experts")
    return ModelSize(
        name=folder.name,
        num_layers=size("num_hidden_layers"),
        hidden_size=hidden_size,
        num_heads=num_heads,
        num_kv_heads=size_or(num_heads, "num_key_value_heads"),
        head_size=size_or(hidden_size // num_heads, "head_dim"),
        mlp_size=size("moe_intermediate_size", "intermediate_size") if num_experts > 1 else size("intermediate_size"),
        vocab_size=size("vocab_size"),
        value_bytes=_value_bytes(config, folder),
        num_experts=num_experts,
        experts_per_token=size("num_experts_per_tok") if num_experts > 1 else 1,
    )


def _value_bytes(config: dict[str, Any], folder: Path) -> int:
    dtype = config.get("dtype") or config.get("torch_dtype") or "float32"
    if dtype not in VALUE_BYTES:
        raise ModelError(f"{folder}/config.json: dtype {dtype!r} is not one of {', '.join(VALUE_BYTES)}")
    return VALUE_BYTES[dtype]
