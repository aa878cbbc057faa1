"""A link in numbers."""

from math import inf, nan

import pytest

from edgeweave.link import LinkProfile


def test_distance_is_time() -> None:
    """A thousand kilometres of fibre are 4.9 ms one way."""
    profile = LinkProfile.of_distance(1000, gbit_per_s=10)
    assert (profile.delay_ns, profile.bytes_per_s) == (4_900_000, 1_250_000_000)
    assert profile.transmission_ns(1_250_000) == 1_000_000
    assert profile.buffer_bytes == 12_250_000


def test_small_links_have_a_buffer_and_pieces_of_some_size() -> None:
    """Without a distance there is still room for a few pieces; a slow link has small ones."""
    assert LinkProfile.of_delay(0, gbit_per_s=10).buffer_bytes == 512 << 10
    assert LinkProfile.of_delay(0, gbit_per_s=0.001).piece_bytes == 4 << 10
    assert LinkProfile.of_delay(0, gbit_per_s=1000).piece_bytes == 256 << 10


@pytest.mark.parametrize(("delay_ms", "gbit"), [(-1, 10), (5, 0), (5, -1), (nan, 10), (5, inf)])
def test_no_such_link(delay_ms: float, gbit: float) -> None:
    """Numbers that describe no link are refused, with what is needed."""
    with pytest.raises(ValueError, match=r"give (a delay|a rate|finite)"):
        LinkProfile.of_delay(delay_ms, gbit_per_s=gbit)
