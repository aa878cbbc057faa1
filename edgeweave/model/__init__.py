"""The model: its cut by layers, ragged attention, keys and values, sampling, devices.

The only package that imports torch. Knows rows, layers and tensors; does not know chunks, sessions, lanes or time.
"""

from torch import Tensor

from edgeweave.model.capacity import KvMemory
from edgeweave.model.cloud import CloudModel, load_cloud
from edgeweave.model.device import open_device, use_threads
from edgeweave.model.edge import EdgeModel, load_edge
from edgeweave.model.sampler import NotFiniteError, Sampler

__all__ = [
    "CloudModel",
    "EdgeModel",
    "KvMemory",
    "NotFiniteError",
    "Sampler",
    "Tensor",
    "load_cloud",
    "load_edge",
    "open_device",
    "use_threads",
]
