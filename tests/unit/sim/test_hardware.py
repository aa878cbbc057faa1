"""Hardware: named, or from a file; impossible figures are refused by name."""

from pathlib import Path

import pytest

from edgeweave.errors import InvalidRequestError
from edgeweave.sim.hardware import HARDWARE, Hardware, Machine, hardware_named


def written(folder: Path, text: str) -> str:
    """Return the path of a file with `text`."""
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_devices_add_up() -> None:
    """Shares of both peaks, times the devices."""
    machine = Machine(Hardware("h", 100, 1000, 10, compute_share=0.5, bandwidth_share=0.8), num_devices=4)
    assert machine.flops_per_us == pytest.approx(4 * 100e12 * 0.5 / 1e6)
    assert machine.bytes_per_us == pytest.approx(4 * 1000e9 * 0.8 / 1e6)
    assert machine.memory_bytes == 40e9
    assert str(machine) == "4 x h"


def test_every_name_stands_for_an_accelerator() -> None:
    for name, hardware in HARDWARE.items():
        assert hardware_named(name) == hardware


def test_a_file_has_the_same_figures(tmp_path: Path) -> None:
    """Shares and fixed times may be left out; the name is that of the file."""
    name = written(tmp_path, "peak_tflops: 50\nbandwidth_gb_per_s: 400\nmemory_gb: 24\nlayer_us: 20\n")
    assert hardware_named(name) == Hardware("mine", 50, 400, 24, layer_us=20)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("peak_tflops: 50", "not hardware"),
        ("- 1", "not hardware"),
        ("{", "not hardware"),
        ("peak_tflops: -1\nbandwidth_gb_per_s: 1\nmemory_gb: 1", "peak_tflops is -1"),
        ("peak_tflops: .nan\nbandwidth_gb_per_s: 1\nmemory_gb: 1", "peak_tflops is nan"),
        ("peak_tflops: much\nbandwidth_gb_per_s: 1\nmemory_gb: 1", "peak_tflops is 'much'"),
        ("peak_tflops: 1\nbandwidth_gb_per_s: 1\nmemory_gb: 1\ncompute_share: 1.5", "a share of a peak is at most 1"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(InvalidRequestError, match=told) as refused:
        hardware_named(written(tmp_path, text))
    assert "\n" not in str(refused.value)


def test_an_unknown_name_is_told_the_known_ones() -> None:
    with pytest.raises(InvalidRequestError, match="hardware 'abacus' is neither a file nor one of ascend-910b"):
        hardware_named("abacus")
