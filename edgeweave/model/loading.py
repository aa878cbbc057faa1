"""Weights from a checkpoint into a tree that holds one side of a model.

transformers' own loader does the work, so checkpoints in the hub's layout are converted as it converts them (experts
merged, names changed). It is given only the tensors whose converted names are in the tree; no other is read.
"""

from collections.abc import Iterable, Sequence
from typing import cast

import torch
from transformers import PreTrainedModel
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import (
    WeightConverter,
    WeightRenaming,
    convert_and_load_state_dict_in_model,
    rename_source_key,
)
from transformers.modeling_utils import LoadStateDictConfig
from transformers.utils import logging as transformers_logging

from edgeweave.errors import ModelNotFoundError
from edgeweave.model.checkpoint import Checkpoint


def fill(model: PreTrainedModel, checkpoint: Checkpoint, *, dtype: torch.dtype, device: torch.device) -> None:
    """Read what `model`, a tree on the meta device, holds, and put it on `device` as `dtype`.

    Raises `ModelNotFoundError` where `checkpoint` lacks a tensor or has it in another shape.
    """
    conversions = cast("list[WeightConverter | WeightRenaming]", get_model_conversion_mapping(model))
    names = _owned_names(model, checkpoint, conversions)
    settings = LoadStateDictConfig(
        dtype=dtype,
        dtype_plan=model._get_dtype_plan(dtype),  # noqa: SLF001  from_pretrained cannot load a part; its steps can
        device_map={"": device},
        weight_mapping=conversions,
    )
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # untyped there
    report, _ = convert_and_load_state_dict_in_model(
        model=model, state_dict={name: checkpoint.stored(name) for name in names}, load_config=settings
    )
    _check_complete(checkpoint, report.missing_keys - model.all_tied_weights_keys.keys())
    _check_complete(checkpoint, [name for name, *_ in report.mismatched_keys])
    _check_complete(checkpoint, report.conversion_errors)
    _mark_loaded(model)
    model._finalize_model_loading(model, settings, report)  # noqa: SLF001  the same
    _check_complete(checkpoint, report.missing_keys)


def _owned_names(
    model: PreTrainedModel, checkpoint: Checkpoint, conversions: Sequence[WeightConverter | WeightRenaming]
) -> Sequence[str]:
    """Return the tensors of `checkpoint` that become, alone or merged with others, tensors of `model`."""
    owned = model.state_dict()
    renamings = [step for step in conversions if isinstance(step, WeightRenaming)]
    converters = [step for step in conversions if isinstance(step, WeightConverter)]
    prefix = model.base_model_prefix

    def becomes_owned(name: str) -> bool:
        converted, _ = rename_source_key(name, renamings, converters, prefix, owned)
        plain, _ = rename_source_key(name, [], [], prefix, owned)
        return converted in owned or plain in owned

    return [name for name in checkpoint.entries if becomes_owned(name)]


def _mark_loaded(model: PreTrainedModel) -> None:
    """Leave for transformers to initialize only what no checkpoint holds: modules with buffers that are computed.

    Initializing others would draw weights again, and would ask for weights that are at the other side.
    """
    for module in model.modules():
        is_complete = not module._non_persistent_buffers_set  # noqa: SLF001  torch has no public question
        module.__dict__["_is_hf_initialized"] = is_complete  # transformers' own mark


def _check_complete(checkpoint: Checkpoint, names: Iterable[str]) -> None:
    bad = sorted(names)
    if bad:
        more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
        raise ModelNotFoundError(
            f"model folder {checkpoint.folder} lacks tensor {bad[0]}{more}, or has it in another shape than "
            "config.json says; fetch the folder again"
        )
