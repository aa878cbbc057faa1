"""The order of units from end to end, as text: a change of behaviour is a diff that somebody reads.

Written anew by `UPDATE_GOLDEN=1 make test ARGS=tests/unit/interleave/test_golden.py`; see `tests/golden/README.md`.
"""

import os
from pathlib import Path

import pytest

from edgeweave.interleave.accounts import Side
from edgeweave.interleave.limits import Limits
from edgeweave.interleave.nouns import UnitRan
from edgeweave.interleave.plans import PLAN_NAMES, PlanRequest
from fakes.mesh import NUM_LAYERS, Config, Mesh
from fakes.symbolic import generate
from fakes.timed import TimedMesh, text_of

GOLDEN = Path(__file__).parents[2] / "golden"
LIMITS = Limits(max_prefill_batch_size=2, max_seq_len=64, max_batch_size=4, chunk_tokens=6)
LOAD = {"a": (8, 3), "b": (4, 3), "c": (5, 2)}
"""Prompt tokens and output tokens of each request; all come at once."""


def played(name: str) -> tuple[Mesh, dict[Side, tuple[UnitRan, ...]]]:
    """Play the load under a plan."""
    plan = PlanRequest(PLAN_NAMES[name], num_segments=2)
    mesh = Mesh(Config(limits=LIMITS, plan=plan, piece_tokens=6, frame_rows=6, max_grace_us=20_000))
    for request_id, (num_prompt, max_tokens) in LOAD.items():
        mesh.queue(request_id, tuple(range(1, num_prompt + 1)), max_tokens=max_tokens)
    mesh.poll_scheduler()
    return mesh, TimedMesh(mesh).play()


@pytest.mark.parametrize("name", PLAN_NAMES)
def test_the_order_of_units_is_as_it_was(name: str) -> None:
    """The end-to-end order under each plan equals the text that is kept, and the replay departs from it nowhere."""
    mesh, ran = played(name)
    path = GOLDEN / f"order_{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text_of(ran), encoding="utf-8")
    assert text_of(ran) == path.read_text(encoding="utf-8")
    assert mesh.session.replay.num_departures == 0
    assert sum(map(len, ran.values())) == sum(t.num_units for t in mesh.session.totals.engines.values())
    for request_id, (num_prompt, max_tokens) in LOAD.items():
        prompt = tuple(range(1, num_prompt + 1))
        assert mesh.emitted[request_id] == generate(prompt, num_layers=NUM_LAYERS, max_tokens=max_tokens)


def test_more_in_flight_ends_sooner() -> None:
    """What the plans are for: over the same link 2p1d ends before 1p1d, and 1p1d before serial."""
    fixed = ("serial", "1p1d", "2p1d")
    ends = [max(unit.end_us for units in played(name)[1].values() for unit in units) for name in fixed]
    assert ends == sorted(ends, reverse=True)
    assert len(set(ends)) == len(ends)
