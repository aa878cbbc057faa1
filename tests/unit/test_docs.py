"""The pages agree with the project: links lead somewhere, examples load, tables are complete."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgeweave.settings import CloudSettings, CommonSettings, EdgeSettings, GatewaySettings, SchedulerSettings, load

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "deploy", "protos", "services")
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, *, language: str) -> Iterator[str]:
    """Yield the code of one language on a page."""
    yield from (code for written, code in FENCE.findall(page.read_text()) if written == language)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    targets = [page.parent / target for target in LINK.findall(page.read_text())]
    assert [str(target) for target in targets if not target.exists()] == []


@pytest.mark.parametrize("settings", [GatewaySettings, SchedulerSettings, EdgeSettings, CloudSettings])
def test_the_settings_of_the_readme_are_legal_for_every_service(settings: type[CommonSettings], tmp_path: Path) -> None:
    """A reader copies that block first."""
    (example,) = blocks(ROOT / "README.md", language="yaml")
    file = tmp_path / "edgeweave.yaml"
    file.write_text(example)
    assert load(settings, ["--config", str(file)], {}).section in example


def test_the_python_of_the_readme_compiles() -> None:
    """What it calls is tested where it is defined."""
    examples = list(blocks(ROOT / "README.md", language="python"))
    assert examples
    for example in examples:
        compile(example, "README.md", "exec")


def test_every_layerwise_behaviour_is_settled_once() -> None:
    """A row that the table leaves out was forgotten, not decided."""
    page = (ROOT / "docs" / "adr" / "0004-layerwise-behaviours.md").read_text()
    rows = re.findall(r"^\| L(\d\d) \| [^|]+ \| (met|differs|part|planned) \| [^|]+ \|$", page, re.MULTILINE)
    assert sorted(int(number) for number, _ in rows) == list(range(1, 64))


def test_every_decision_is_in_the_list() -> None:
    """A page that the list does not name is not found."""
    folder = ROOT / "docs" / "adr"
    listed = set(LINK.findall((folder / "README.md").read_text()))
    assert listed == {page.name for page in folder.glob("[0-9]*.md")}
