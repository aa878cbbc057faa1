"""What can be asked of a link, in words."""

import json
from pathlib import Path

import pytest

from edgeweave.errors import InvalidSettingsError
from edgeweave.link import LinkProfile
from edgeweave.link.changes import Cut, Restore, Set, Stall, change_of
from edgeweave.link.script import read_script

PROFILE = LinkProfile.of_distance(1000, gbit_per_s=10)


def test_a_set_changes_what_it_names_and_nothing_else() -> None:
    change = change_of({"set": {"distance_km": 3000, "jitter_ms": 0.5}})
    assert isinstance(change, Set)
    changed = change.applied(PROFILE)
    assert (changed.delay_ns, changed.jitter_ns, changed.bytes_per_s) == (14_700_000, 500_000, PROFILE.bytes_per_s)


def test_the_other_words() -> None:
    assert change_of({"stall": {"ms": 2.5}}) == Stall(2_500_000)
    assert change_of("cut") == Cut()
    assert change_of("restore") == Restore()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("burn", "nothing that a link can do; give one of"),
        (None, "nothing that a link can do"),
        ({"set": {}}, "nothing that a link can do"),
        ({"stall": {"ms": 1, "s": 1}}, "nothing that a link can do"),
        ({"set": {"delay_ms": 1}, "stall": {"ms": 1}}, "nothing that a link can do"),
        ({"set": {"length": 1}}, "has no 'length'; give distance_km"),
        ({"set": {"delay_ms": "1"}}, "delay_ms: '1' is no number of at least 0"),
        ({"set": {"delay_ms": -1}}, "no number of at least 0"),
        ({"set": {"delay_ms": True}}, "no number of at least 0"),
        ({"stall": {"ms": float("inf")}}, "no number of at least 0"),
    ],
)
def test_other_words_are_refused_with_what_is_known(words: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        change_of(words)


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"bandwidth_gbit": 0}, "give a rate above 0"),
        ({"stalls_per_s": 100, "stall_ms": 20}, "leave no time to send"),
    ],
)
def test_what_makes_no_link_is_refused_when_it_is_applied(values: dict[str, float], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Set(values).applied(PROFILE)


def test_a_script_plays_in_the_order_of_its_times(tmp_path: Path) -> None:
    """Whatever the order of the entries, each change comes at its time and once."""
    path = tmp_path / "script.yaml"
    path.write_text("- {at_s: 2, restore: }\n- at_s: 1.5\n  cut:\n- {at_s: 0, set: {delay_ms: 7}}\n")
    script = read_script(path, PROFILE)
    assert script.take(0) == Set({"delay_ms": 7})
    assert script.take(0) is None
    assert (script.next_ns or 0) == 1_500_000_000
    assert script.take(3_000_000_000) == Cut()
    assert script.take(3_000_000_000) == Restore()
    assert script.next_ns is None
    assert script.take(3_000_000_000) is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{at_s: 1}", "no list"),
        ("- {cut: }", "entry 1: no at_s"),
        ("- {at_s: -1, cut: }", "entry 1: no at_s"),
        ("- {at_s: 1}", "entry 1: None is nothing that a link can do"),
        ("- {at_s: 1, cut: }\n- {at_s: 1, cut: , restore: }", "entry 2: .* is nothing that a link can do"),
        ("- {at_s: 1, set: {bandwidth_gbit: 0}}", "at 1 s: .* give a rate above 0"),
        ("- [", "give a readable YAML file"),
    ],
)
def test_a_wrong_script_is_one_line_that_says_where(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(text)
    with pytest.raises(InvalidSettingsError, match=complaint) as raised:
        read_script(path, PROFILE)
    assert "\n" not in str(raised.value)
    assert str(path) in str(raised.value)


def test_words_of_json_and_of_a_script_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    words = {"set": {"bandwidth_gbit": 1}}
    path.write_text(json.dumps([{"at_s": 1, **words}]))
    assert read_script(path, PROFILE).take(10**9) == change_of(words)
