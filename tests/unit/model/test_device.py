"""Devices by name."""

import importlib.util

import pytest
import torch

from edgeweave.errors import InvalidSettingsError
from edgeweave.model import open_device


def test_the_cpu_is_always_there() -> None:
    assert open_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize("name", ["tpu", "", "cuda:x", "cuda:"])
def test_an_unknown_device_is_refused(name: str) -> None:
    """The error lists those that are known."""
    with pytest.raises(InvalidSettingsError, match="choose one of cpu, cuda, npu"):
        open_device(name)


def test_a_missing_cuda_device_says_what_to_do() -> None:
    """A number beyond those of the machine is missing everywhere."""
    with pytest.raises(InvalidSettingsError, match=r"device cuda:99 is not there.*or use the device cpu"):
        open_device("cuda:99")


@pytest.mark.skipif(importlib.util.find_spec("torch_npu") is not None, reason="torch-npu is installed")
def test_a_missing_npu_runtime_says_what_to_install() -> None:
    with pytest.raises(InvalidSettingsError, match=r"edgeweave\[npu\]"):
        open_device("npu")
