"""Element types: their names in settings, in the contract and in torch."""

import torch

from edgeweave.errors import ModelError
from edgeweave.interleave.nouns import DType

_TORCH = {DType.FLOAT32: torch.float32, DType.BFLOAT16: torch.bfloat16, DType.FLOAT16: torch.float16}


def dtype_of(name: str) -> DType:
    """Return the element type that settings call `name`; raise `ModelError` for any other."""
    try:
        return DType[name.upper()]
    except KeyError:
        names = ", ".join(dtype.name.lower() for dtype in DType)
        raise ModelError(f'dtype "{name}" is not known; choose one of {names}') from None


def torch_dtype(dtype: DType) -> torch.dtype:
    """Return what torch calls `dtype`."""
    return _TORCH[dtype]
