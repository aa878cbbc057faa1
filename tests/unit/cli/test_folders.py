"""Folders that a flag names."""

from pathlib import Path

import pytest

from edgeweave.cli.folders import made_folder
from edgeweave.errors import InvalidSettingsError


def test_a_folder_is_made_with_those_around_it(tmp_path: Path) -> None:
    assert made_folder(tmp_path / "a" / "b", flag="--cache").is_dir()


def test_what_cannot_be_made_is_told_by_its_flag(tmp_path: Path) -> None:
    """A file stands in its place."""
    (tmp_path / "a").write_text("", encoding="utf-8")
    with pytest.raises(InvalidSettingsError, match=r"^--log-dir .*/a: File exists; name a folder"):
        made_folder(tmp_path / "a", flag="--log-dir")
