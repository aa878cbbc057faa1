"""The module tree of a whole model, without weights.

Knows how transformers builds a causal language model from its configuration, and where in it the list of layers is.
Does not know what the layers do (`probe`) or which side keeps them (`part`).
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel
from transformers.utils import logging as transformers_logging

from edgeweave.errors import ModelNotFoundError, ModelNotSupportedError
from edgeweave.model.attention import ATTENTION_NAME


@dataclass(frozen=True, slots=True)
class ModelTree:
    """A model on the meta device and the place of its layer list: attribute `layers_name` of `layers_owner`."""

    model: PreTrainedModel
    layers_owner: nn.Module
    layers_name: str

    @property
    def config(self) -> PreTrainedConfig:
        """The configuration of the text model."""
        return self.model.config.get_text_config()

    @property
    def layers(self) -> nn.ModuleList:
        """All layers of the model, or what stands in their place."""
        layers: nn.ModuleList = getattr(self.layers_owner, self.layers_name)
        return layers

    def replace_layers(self, stand_in: nn.Module) -> None:
        """Let the model's forward walk `stand_in` in place of its layer list."""
        setattr(self.layers_owner, self.layers_name, stand_in)


def build_tree(folder: Path, *, dtype: torch.dtype) -> ModelTree:
    """Return the tree of the model in `folder`, on the meta device.

    Raises `ModelNotFoundError` where config.json cannot be read, `ModelNotSupportedError` where transformers knows no
    causal language model for it, where it is an encoder-decoder or quantized, or has no single list of layers.
    """
    # What it advises on the use of a model is meant for whoever writes code; what is wrong here is told in one line.
    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # untyped there
    config = _read_config(folder)
    if config.is_encoder_decoder:
        raise ModelNotSupportedError(f"{folder}: encoder-decoder models cannot be cut; choose a decoder-only model")
    if getattr(config, "quantization_config", None) is not None:
        raise ModelNotSupportedError(f"{folder}: quantized weights cannot be cut; save the model dequantized")
    if type(config) not in AutoModelForCausalLM._model_mapping:  # noqa: SLF001  transformers has no public question
        raise ModelNotSupportedError(f'{folder}: model type "{config.model_type}" is not a causal language model')
    model = _without_weights(config, dtype=dtype)
    return _tree_of(model)


def _without_weights(config: PreTrainedConfig, *, dtype: torch.dtype) -> PreTrainedModel:
    try:
        with torch.device("meta"):
            model: PreTrainedModel = AutoModelForCausalLM.from_config(  # type: ignore[no-untyped-call]  # untyped there
                config, dtype=dtype, attn_implementation=ATTENTION_NAME
            )
    except Exception as error:  # a foreign constructor fails in its own way; the reason is what counts
        raise ModelNotSupportedError(
            f'model type "{config.model_type}" cannot be built without weights and with ragged attention '
            f"({type(error).__name__}: {error})"
        ) from error
    model.train(mode=False).requires_grad_(requires_grad=False)
    return model


def _read_config(folder: Path) -> PreTrainedConfig:
    try:
        config: PreTrainedConfig = AutoConfig.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ModelNotFoundError(f"{folder}: config.json cannot be used: {reason}") from None
    return config


def _tree_of(model: PreTrainedModel) -> ModelTree:
    num_layers = model.config.get_text_config().num_hidden_layers
    places = [
        (owner, name)
        for owner in model.modules()
        for name, child in owner.named_children()
        if isinstance(child, nn.ModuleList) and len(child) == num_layers
    ]
    if len(places) != 1:
        raise ModelNotSupportedError(
            f"{type(model).__name__} has {len(places)} lists of {num_layers} modules; "
            "a model is cut at its single list of layers"
        )
    return ModelTree(model, *places[0])
