"""Accelerators as a handful of public figures, and how much of them real work gets.

Knows peaks and shares. Does not know models. The named entries are data sheet values: they rank machines and give the
right order of magnitude, and measured values in a YAML file replace them.
"""

from dataclasses import dataclass, fields
from pathlib import Path

import yaml

from edgeweave.errors import InvalidRequestError


@dataclass(frozen=True, slots=True)
class Hardware:
    """One accelerator: dense 16-bit peak, memory bandwidth and size.

    `compute_share` and `bandwidth_share` say how much of both peaks prefill and decode get. Each layer pays `layer_us`
    for launching its kernels and, over several devices, for adding up their results; each unit pays `unit_us`.
    """

    name: str
    peak_tflops: float
    bandwidth_gb_per_s: float
    memory_gb: float
    compute_share: float = 0.5
    bandwidth_share: float = 0.7
    layer_us: float = 50.0
    unit_us: float = 150.0

    def __post_init__(self) -> None:
        """Refuse figures that describe no machine."""
        for figure in fields(self)[1:]:
            value = getattr(self, figure.name)
            if not isinstance(value, int | float) or not value > 0:
                raise InvalidRequestError(f"hardware {self.name}: {figure.name} is {value!r}; give a number above 0")
        if max(self.compute_share, self.bandwidth_share) > 1:
            raise InvalidRequestError(f"hardware {self.name}: a share of a peak is at most 1")


@dataclass(frozen=True, slots=True)
class Machine:
    """So many devices that share every layer of a model between them."""

    hardware: Hardware
    num_devices: int = 1

    @property
    def flops_per_us(self) -> float:
        """Floating-point operations that prefill gets."""
        return self.num_devices * self.hardware.peak_tflops * 1e6 * self.hardware.compute_share

    @property
    def bytes_per_us(self) -> float:
        """Bytes of memory that decode gets to read."""
        return self.num_devices * self.hardware.bandwidth_gb_per_s * 1e3 * self.hardware.bandwidth_share

    @property
    def memory_bytes(self) -> float:
        """Memory of all devices."""
        return self.num_devices * self.hardware.memory_gb * 1e9

    def __str__(self) -> str:
        return self.hardware.name if self.num_devices == 1 else f"{self.num_devices} x {self.hardware.name}"


HARDWARE = {
    hardware.name: hardware
    for hardware in (
        # No data sheet gives all of these. As reported for Atlas 800 A2 servers; variants differ, 280 to 376 TFLOPS.
        Hardware("ascend-910b", peak_tflops=313, bandwidth_gb_per_s=1600, memory_gb=64),
        # NVIDIA A100 data sheet, SXM with 80 GB: bf16 dense, HBM2e.
        Hardware("a100-80gb", peak_tflops=312, bandwidth_gb_per_s=2039, memory_gb=80),
        # NVIDIA H100 data sheet, SXM: bf16 without sparsity, HBM3.
        Hardware("h100", peak_tflops=989, bandwidth_gb_per_s=3350, memory_gb=80),
        # NVIDIA L40S data sheet: bf16 without sparsity, GDDR6.
        Hardware("l40s", peak_tflops=362, bandwidth_gb_per_s=864, memory_gb=48),
    )
}


def hardware_named(name: str) -> Hardware:
    """Return the hardware called `name`, or the one in the YAML file `name`.

    Raises:
        InvalidRequestError: there is neither, or a figure is missing, unknown or impossible.
    """
    if name in HARDWARE:
        return HARDWARE[name]
    path = Path(name)
    if not path.is_file():
        raise InvalidRequestError(f"hardware {name!r} is neither a file nor one of {', '.join(HARDWARE)}")
    try:
        return Hardware(**{"name": path.stem, **yaml.safe_load(path.read_text(encoding="utf-8"))})
    except (TypeError, ValueError, yaml.YAMLError) as error:
        told = " ".join(str(error).split())
        raise InvalidRequestError(f"{path}: not hardware ({told}); compare edgeweave/sim/hardware.py") from None
