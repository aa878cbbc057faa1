"""Tiny configurations of the architectures that are proved exact.

Each has six layers, so that every split of the tests leaves a body; windows are smaller than the prompts; groups of
heads, experts, latent heads and sinks are there where the architecture has them.
"""

from typing import Any

NUM_LAYERS = 6
VOCAB_SIZE = 192
WINDOW = 6

_COMMON: dict[str, Any] = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": NUM_LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "tie_word_embeddings": False,
}
_ALTERNATING = ["sliding_attention", "full_attention"] * (NUM_LAYERS // 2)
_UNEVEN = ["sliding_attention", "sliding_attention", "full_attention"] * (NUM_LAYERS // 3)

ARCHITECTURES: dict[str, dict[str, Any]] = {
    "llama": {},
    "qwen2": {"tie_word_embeddings": True},
    "qwen3": {"head_dim": 12},
    "qwen3_moe": {"head_dim": 8, "num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 24},
    "mistral": {"sliding_window": WINDOW},
    "mixtral": {"num_local_experts": 4, "num_experts_per_tok": 2},
    "gemma2": {
        "head_dim": 12,
        "query_pre_attn_scalar": 10,
        "sliding_window": WINDOW,
        "layer_types": _ALTERNATING,
        "attn_logit_softcapping": 5.0,
        "final_logit_softcapping": 10.0,
        "tie_word_embeddings": True,
    },
    "gemma3_text": {
        "head_dim": 12,
        "query_pre_attn_scalar": 10,
        "sliding_window": WINDOW,
        "layer_types": _UNEVEN,
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 10_000.0},
        },
    },
    "phi3": {"sliding_window": None},
    "glm4": {"head_dim": 8},
    "olmo2": {},
    "granite": {
        "embedding_multiplier": 3.0,
        "logits_scaling": 2.0,
        "residual_multiplier": 0.7,
        "attention_multiplier": 0.3,
    },
    "gpt_oss": {
        "head_dim": 8,
        "sliding_window": WINDOW,
        "layer_types": _ALTERNATING,
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 10_000.0,
            "factor": 32.0,
            "original_max_position_embeddings": 16,
        },
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
    },
    "deepseek_v3": {
        "num_key_value_heads": 4,
        "moe_intermediate_size": 16,
        "n_routed_experts": 8,
        "n_group": 2,
        "topk_group": 1,
        "num_experts_per_tok": 2,
        "first_k_dense_replace": 2,
        "q_lora_rank": 16,
        "kv_lora_rank": 16,
        "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 8,
        "v_head_dim": 12,
    },
    "starcoder2": {"sliding_window": WINDOW},
    "gpt2": {"n_embd": 32, "n_head": 4, "n_layer": NUM_LAYERS, "n_positions": 512, "n_inner": 48},
}


def config_of(name: str) -> dict[str, Any]:
    """Return the keyword arguments of the configuration class of architecture `name`."""
    own = ARCHITECTURES[name]
    if name == "gpt2":
        shared = ("vocab_size", "bos_token_id", "eos_token_id", "pad_token_id")
        return {key: _COMMON[key] for key in shared} | own
    return _COMMON | own
