"""What is loaded is never looked at by the collector."""

import gc

import pytest

from edgeweave.engine.garbage import nothing_collected


def test_what_was_made_inside_is_left_out_of_every_collection() -> None:
    """It is frozen at the end, and the collector runs again."""
    try:
        with nothing_collected():
            loaded = [object() for _ in range(3)]
            assert not gc.isenabled()
        assert gc.isenabled()
        assert gc.get_freeze_count() > 0
        assert not any(found is loaded for found in gc.get_objects())
    finally:
        gc.unfreeze()


def test_a_load_that_fails_leaves_the_collector_on() -> None:
    """Whatever the error is."""
    with pytest.raises(RuntimeError), nothing_collected():
        raise RuntimeError
    gc.unfreeze()
    assert gc.isenabled()
