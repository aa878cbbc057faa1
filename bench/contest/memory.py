"""How fast one core reads memory: `python -m contest.memory`.

A plain read of a buffer that no cache holds: torch adds all its elements up. The fastest of some reads counts, since
nothing makes a read faster than the memory is.
"""

import time
from collections.abc import Mapping
from typing import Any

import torch

from contest.turns import Streams

BUFFER_BYTES = 1 << 29
NUM_READS = 5


def main() -> None:
    """Take turns until there are no more."""
    streams = Streams.taken()
    torch.set_num_threads(1)
    buffer = torch.ones(BUFFER_BYTES // torch.float32.itemsize)  # [elements]
    settings = {"torch": torch.__version__, "read": f"sum of {BUFFER_BYTES >> 20} MiB, the fastest of {NUM_READS}"}
    streams.serve(lambda _: _answer(buffer), settings=settings)


def _answer(buffer: torch.Tensor) -> Mapping[str, Any]:
    return {"bytes_per_s": BUFFER_BYTES / min(_read_s(buffer) for _ in range(NUM_READS))}


def _read_s(buffer: torch.Tensor) -> float:
    begin_s = time.perf_counter()
    buffer.sum()
    return time.perf_counter() - begin_s


if __name__ == "__main__":
    main()
