"""A settings file is read strictly."""

import pytest

from edgeweave.errors import InvalidSettingsError
from edgeweave.settings.yaml_file import parse_mapping


def test_plain_scalars() -> None:
    """Values are what a reader takes them for: `1:1` is no number in base 60, `on` no truth value."""
    text = "a: 1:1\nb: on\nc: 1e3\nd: ~\ne:\nf: True\ng: 0.5\nh: 12\n"
    assert parse_mapping(text, where="x") == {
        "a": "1:1",
        "b": "on",
        "c": 1000.0,
        "d": None,
        "e": None,
        "f": True,
        "g": 0.5,
        "h": 12,
    }


def test_json_is_read() -> None:
    """A JSON file works like a YAML file, tabs and all."""
    assert parse_mapping('{\n\t"edge": {\n\t\t"split": "2:1"}}', where="x") == {"edge": {"split": "2:1"}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3", r"^f.yaml line 1.*the key a is written twice"),
        ("- 1", r"^f.yaml: holds list"),
        ("a: [1,\nb: 2", r"^f.yaml line \d+, column \d+: not YAML"),
        ("a: !!python/object/apply:os.getcwd []", r"^f.yaml line 1.*not YAML"),
        ("a: \x00", r"^f.yaml: not YAML"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    """What cannot be read is one line with its place."""
    with pytest.raises(InvalidSettingsError, match=message) as caught:
        parse_mapping(text, where="f.yaml")
    assert "\n" not in str(caught.value)


def test_empty_is_no_settings() -> None:
    """An empty file says nothing."""
    assert parse_mapping("# nothing\n", where="x") == {}
