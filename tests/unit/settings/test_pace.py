"""How the pace of prefill and the bandwidth of the link are written."""

import pytest

from edgeweave.errors import InvalidSettingsError
from edgeweave.settings import EdgeSettings, load


def edge(*flags: str) -> EdgeSettings:
    return load(EdgeSettings, ["--model", "m", *flags], {})


def test_a_pace_is_a_word_or_a_number() -> None:
    assert edge().prefill_pace == "auto"
    assert edge("--prefill-pace", "off").prefill_pace == "off"
    assert edge("--prefill-pace", "2.5").prefill_pace == "2.5"
    assert edge().link_gbit is None
    assert edge("--link-gbit", "10").link_gbit == 10


@pytest.mark.parametrize("pace", ["fast", "0", "-1", "inf", "nan", ""])
def test_any_other_pace_is_refused_with_what_it_may_be(pace: str) -> None:
    with pytest.raises(InvalidSettingsError, match="a pace is auto, off, or a number of Gbit/s"):
        edge("--prefill-pace", pace)
