"""The devices that an engine computes on.

Knows their names and how to say that one is missing. Does not know models.
"""

import importlib.util

import torch

from edgeweave.errors import InvalidSettingsError

DEVICE_NAMES = ("cpu", "cuda", "npu")


def open_device(name: str) -> torch.device:
    """Return the device `name`, such as "cpu", "cuda" or "cuda:1"; raise `InvalidSettingsError` where it is missing."""
    kind, colon, index = name.partition(":")
    if kind not in DEVICE_NAMES or (colon and not index.isdecimal()):
        raise InvalidSettingsError(f'device "{name}" is not known; choose one of {", ".join(DEVICE_NAMES)}')
    if kind == "cuda":
        _check_cuda(int(index or 0))
    if kind == "npu":
        _check_npu()
    return torch.device(name)


def use_threads(num_threads: int) -> None:
    """Let this process compute with `num_threads` CPU threads."""
    torch.set_num_threads(num_threads)


def _check_cuda(index: int) -> None:
    if index >= torch.cuda.device_count():
        raise InvalidSettingsError(
            f"device cuda:{index} is not there: this PyTorch sees {torch.cuda.device_count()} CUDA devices; "
            "install a CUDA build of torch and a driver, or use the device cpu"
        )


def _check_npu() -> None:
    if importlib.util.find_spec("torch_npu") is None:
        raise InvalidSettingsError('device npu needs torch-npu; install "edgeweave[npu]", or use the device cpu')
    from edgeweave.model import npu  # noqa: PLC0415  importing it loads the NPU runtime

    npu.check()
