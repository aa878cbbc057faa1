"""The exhaustive walk of the small case: every order of deliveries and ends, a client leaving at any point.

The case: two sequences share a chunk, one of them needs another, then both decode. Each line that a
walk prints says how much it saw.
"""

from dataclasses import replace

import pytest

from edgeweave.errors import EdgeweaveError
from edgeweave.interleave.limits import Limits
from edgeweave.interleave.nouns import Fuse, KvCapacity, PlanKind
from edgeweave.interleave.plans import PlanRequest
from fakes.mesh import Config
from fakes.mutants import MUTATIONS
from fakes.walk import Asked, Walk

LIMITS = Limits(max_prefill_batch_size=2, max_prefill_tokens=16, max_seq_len=16, max_batch_size=2, chunk_tokens=2)
TWO_P = PlanRequest(PlanKind.TWO_P_ONE_D, num_segments=1)
SMALL = Config(limits=LIMITS, plan=TWO_P, piece_tokens=8, frame_rows=8, max_grace_us=0)
LONG_LEAVES = {"long": Asked((5, 6, 7), 2), "short": Asked((8,), 2, may_leave=False)}
ANY_LEAVES = {"long": Asked((5, 6, 7), 2), "short": Asked((8,), 1)}
NOBODY_LEAVES = {name: replace(asked, may_leave=False) for name, asked in LONG_LEAVES.items()}
TIGHT = replace(SMALL, edge_kv=KvCapacity(1, 6), cloud_kv=KvCapacity(1, 6))
GROWING = {"old": Asked((5, 6), 3), "new": Asked((8,), 3, may_leave=False)}


def walked(config: Config, asked: dict[str, Asked], *, max_states: int | None = None) -> Walk:
    """Walk a case and say how much there was."""
    walk = Walk(config, asked, max_states=max_states)
    walk.run()
    print(f"{walk.num_states} states, {walk.num_moves} moves, {walk.num_ends} ends")  # noqa: T201 - the size of a walk
    return walk


@pytest.mark.parametrize("asked", [LONG_LEAVES, ANY_LEAVES], ids=["long leaves", "any leaves"])
def test_every_order_of_events_is_exact_and_leaves_nothing(asked: dict[str, Asked]) -> None:
    """Whatever order streams deliver in and whenever clients leave, tokens are exact and all cores end empty."""
    walk = walked(SMALL, asked)
    assert walk.is_complete
    assert walk.num_states > 5_000
    assert walk.num_ends > 1
    assert {"prefilling", "decoding"} <= walk.left_in


def test_every_order_is_exact_where_blocks_are_short() -> None:
    """The same with so few KV blocks that the newest sequence is preempted and recomputed."""
    walk = walked(TIGHT, GROWING)
    assert walk.is_complete
    assert walk.num_preemptions == 1


@pytest.mark.parametrize("kind", [PlanKind.SERIAL, PlanKind.ONE_P_ONE_D])
def test_every_order_is_exact_under_the_other_plans(kind: PlanKind) -> None:
    """The rules do not depend on the plan; under `serial` one unit of the mesh is away in every state."""
    assert walked(replace(SMALL, plan=PlanRequest(kind, num_segments=1)), LONG_LEAVES).is_complete


def test_every_order_is_exact_where_one_place_holds_all_layers() -> None:
    """Centralized, the same core and the same rules serve without a cloud."""
    walk = walked(replace(SMALL, centralized=True), ANY_LEAVES)
    assert walk.is_complete
    assert walk.num_ends > 1


@pytest.mark.parametrize("centralized", [False, True], ids=["split", "one place"])
def test_every_order_is_exact_where_rows_ride_in_prefill(*, centralized: bool) -> None:
    """Steps that ride from the start or later, and chunks that overtake others, change no token and leave nothing."""
    plan = PlanRequest(PlanKind.TWO_P_ONE_D, num_segments=2, fuse=Fuse.ALWAYS)
    walk = walked(replace(SMALL, plan=plan, centralized=centralized), LONG_LEAVES)
    assert walk.is_complete
    assert walk.num_ends > 1


def test_two_steps_in_flight_are_exact_as_far_as_the_walk_goes() -> None:
    """With two decode groups the walk has no early end; a part of it is walked."""
    plan = PlanRequest(PlanKind.TWO_P_ONE_D, max_steps=2, num_segments=1)
    asked = {"long": Asked((5, 6, 7), 3), "short": Asked((8,), 3)}
    assert walked(replace(SMALL, plan=plan), asked, max_states=3_000).num_states >= 3_000


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_walk_catches_a_broken_rule(name: str) -> None:
    """Taking away any one rule makes a state or an end of the small case wrong."""
    with pytest.raises((AssertionError, EdgeweaveError, KeyError)):
        walked(MUTATIONS[name](SMALL), LONG_LEAVES)


@pytest.mark.parametrize("name", [name for name in MUTATIONS if name != "no hold"])
def test_a_broken_rule_is_harmless_where_nobody_leaves(name: str) -> None:
    """The broken cores are sound otherwise: it is the missing rule that is caught, and it is for those who leave."""
    assert walked(MUTATIONS[name](SMALL), NOBODY_LEAVES).is_complete


@pytest.mark.exact
@pytest.mark.timeout(900)
def test_the_large_case_is_exact() -> None:
    """Both sequences decode, and the client of either may leave at any point."""
    both = {name: replace(asked, may_leave=True) for name, asked in LONG_LEAVES.items()}
    walk = walked(SMALL, both)
    assert walk.is_complete
    assert walk.num_states > 90_000


@pytest.mark.exact
@pytest.mark.timeout(900)
def test_the_large_case_is_exact_in_pieces_where_blocks_are_short() -> None:
    """Every unit goes in frames of one row and the head in pieces of one token, over short KV blocks."""
    config = replace(TIGHT, frame_rows=1, piece_tokens=1)
    both = {name: replace(asked, may_leave=True) for name, asked in GROWING.items()}
    walk = walked(config, both)
    assert walk.is_complete
    assert walk.num_preemptions > 0
