"""Real models of both engines that fail, stop or lie when a test asks for it.

A model is loaded once for each shape and shared by all meshes of a run; one mesh at a time may use it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from threading import Event
from typing import Any

import torch
from torch import Tensor

from edgeweave.interleave.nouns import Fingerprint, KvCapacity, Row, Segment
from edgeweave.interleave.split import Split
from edgeweave.model import CloudModel, EdgeModel, load_cloud, load_edge, use_threads

ONE_PLACE = "none"
LONGEST_HOLD_S = 20.0


class InjectedError(RuntimeError):
    """What a device raises when a test says so."""


@dataclass
class Fault:
    """Hits the first unit of `call` ("head", "body" or "tail") that `meets` accepts; `rows` are those it hit."""

    call: str
    meets: Callable[[Sequence[Row]], bool]
    makes_nan: bool = False
    rows: tuple[Row, ...] | None = None


@dataclass
class Faults:
    """What goes wrong in one engine's model. The test arms it, the compute thread meets it."""

    fault: Fault | None = None
    lies: dict[str, Any] = field(default_factory=dict)
    _gate: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        self._gate.set()

    def arm(self, call: str, meets: Callable[[Sequence[Row]], bool], *, makes_nan: bool = False) -> Fault:
        """Let the next unit of `call` that `meets` accepts fail: by an exception, or by a result that is no number."""
        self.fault = Fault(call, meets, makes_nan)
        return self.fault

    def hold(self) -> None:
        """Let the compute thread stop at its next unit, until `let_go`."""
        self._gate.clear()

    def let_go(self) -> None:
        """Let the compute thread go on."""
        self._gate.set()

    def run(self, call: str, rows: Sequence[Row], compute: Callable[[], Tensor]) -> Tensor:
        """Run a unit, unless something is armed for it."""
        if not self._gate.wait(LONGEST_HOLD_S):
            raise TimeoutError(f"the test held the engine for more than {LONGEST_HOLD_S:g} s")
        fault = self.fault
        if fault is None or fault.rows is not None or fault.call != call or not fault.meets(rows):
            return compute()
        fault.rows = tuple(rows)
        if fault.makes_nan:
            return torch.full_like(compute(), torch.nan)
        raise InjectedError(f"the {call} of {list(rows)} fails on request")

    def fingerprint(self, true: Fingerprint) -> Fingerprint:
        """Return what the engine claims to be made of."""
        return replace(true, **self.lies)


def is_step(rows: Sequence[Row]) -> bool:
    """Whether a unit decodes, in a mesh whose prompts have more than one token and are not cut."""
    return all(row.num_tokens == 1 and row.start > 0 for row in rows)


def is_chunk(rows: Sequence[Row]) -> bool:
    """Whether a unit prefills, in the same mesh."""
    return not is_step(rows)


class FaultyEdge(EdgeModel):
    """The edge's share of a model: all that `model` is made of, and faults of its own."""

    def __init__(self, model: EdgeModel) -> None:
        vars(self).update(vars(model))
        self.faults = Faults()

    @property
    def fingerprint(self) -> Fingerprint:
        return self.faults.fingerprint(super().fingerprint)

    def run_head(self, rows: Sequence[Row], token_ids: Sequence[int]) -> Tensor:
        run = super().run_head
        return self.faults.run("head", rows, lambda: run(rows, token_ids))

    def run_tail(self, rows: Sequence[Row], hidden: Tensor, *, final: Sequence[int]) -> Tensor:
        run = super().run_tail
        return self.faults.run("tail", rows, lambda: run(rows, hidden, final=final))


class FaultyCloud(CloudModel):
    """The body of a model, likewise."""

    def __init__(self, model: CloudModel) -> None:
        vars(self).update(vars(model))
        self.faults = Faults()

    @property
    def fingerprint(self) -> Fingerprint:
        return self.faults.fingerprint(super().fingerprint)

    def run_segment(self, rows: Sequence[Row], hidden: Tensor, segment: Segment) -> Tensor:
        run = super().run_segment
        return self.faults.run("body", rows, lambda: run(rows, hidden, segment))


def edge_model(folder: Path, *, split: str, kv: KvCapacity) -> FaultyEdge:
    """Return the edge's share of the model in `folder`; all of it with the split `ONE_PLACE`."""
    return FaultyEdge(_edge(folder, split, kv))


def cloud_model(folder: Path, *, split: str, kv: KvCapacity) -> FaultyCloud:
    """Return the body of the model in `folder`."""
    return FaultyCloud(_cloud(folder, split, kv))


@lru_cache(maxsize=64)
def _edge(folder: Path, split: str, kv: KvCapacity) -> EdgeModel:
    use_threads(1)
    return load_edge(folder, split=None if split == ONE_PLACE else Split.parse(split), kv=kv)


@lru_cache(maxsize=64)
def _cloud(folder: Path, split: str, kv: KvCapacity) -> CloudModel:
    use_threads(1)
    return load_cloud(folder, split=Split.parse(split), kv=kv)
