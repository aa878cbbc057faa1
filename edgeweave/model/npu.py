"""Ascend NPUs, through torch-npu. Importing this module loads the NPU runtime; only `device` imports it."""

import torch
import torch_npu  # type: ignore[import-not-found,unused-ignore]  # an optional extra, absent on other machines

from edgeweave.errors import InvalidSettingsError


def check() -> None:
    """Raise `InvalidSettingsError` unless an NPU can be used."""
    if not torch_npu.npu.is_available():
        raise InvalidSettingsError(
            f"device npu is not there: torch {torch.__version__} sees no NPU; check the driver, or use the device cpu"
        )
