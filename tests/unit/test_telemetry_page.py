"""docs/telemetry.md lists every name that the services tell, with its unit, and no other."""

import inspect
import re
from enum import Enum
from pathlib import Path

import pytest

from edgeweave import telemetry
from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import BubbleCause, Lane, Stage
from edgeweave.metrics.engine_meter import BubbleKind
from edgeweave.metrics.metric import Metric
from edgeweave.metrics.registry import GROUPS, METRICS, PROCESS_METRICS
from edgeweave.metrics.request_meter import REASONS
from edgeweave_gateway.spans import GenAi

PAGE = (Path(__file__).parents[2] / "docs" / "telemetry.md").read_text()
ENUMS: dict[str, list[str]] = {
    "engine": [side.value for side in Side],
    "kind": [kind.value for kind in BubbleKind],
    "cause": [cause.name.lower() for cause in BubbleCause],
    "stage": [stage.name.lower() for stage in Stage],
    "lane": [lane.name.lower() for lane in Lane],
    "finished_reason": list(REASONS),
}


def section(title: str) -> str:
    """Return the text below a heading, up to the next of its rank."""
    found = re.search(rf"^(#+) {re.escape(title)}\n(.*?)(?=^#{{1,2}} |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, f"the page has no section {title!r}"
    return found[2]


def names_in(text: str) -> list[str]:
    """Return what the first column of the tables in a text names."""
    return re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)


def constants(owner: type) -> list[str]:
    """Return the names that a class of constants holds."""
    return [value for name, value in vars(owner).items() if name.isupper() and isinstance(value, str)]


def classes_of_constants() -> list[type]:
    """Return every class of names in `edgeweave.telemetry`, wherever it is defined, but that of spans."""
    owners = [owner for _, owner in inspect.getmembers(telemetry, inspect.isclass) if not issubclass(owner, Enum)]
    ours = [owner for owner in owners if owner.__module__.startswith("edgeweave.")]
    return [owner for owner in ours if constants(owner) and owner is not telemetry.SpanName]


def row(metric: Metric) -> str:
    """Return the line of the page for a metric."""
    labels = ", ".join(metric.labels) or "-"
    facts = (metric.kind.value, metric.unit, labels, metric.source.value, metric.help)
    return f"| `{metric.name}` | {' | '.join(facts)} |"


def test_every_span_is_listed_once() -> None:
    """A span that is made and not listed cannot be looked for."""
    assert sorted(names_in(section("Spans"))) == sorted(constants(telemetry.SpanName))


def test_every_attribute_is_listed_once() -> None:
    """Those of the semantic conventions too."""
    named = [name for owner in (*classes_of_constants(), GenAi) for name in constants(owner)]
    assert sorted(names_in(section("Attributes"))) == sorted(named)


def test_every_metric_is_listed_as_the_registry_has_it() -> None:
    """Name, type, unit, labels, who measures it, and what it says; a row that is missing is shown as it should be."""
    listed = re.findall(r"^\| `edgeweave:.*$", section("Metrics"), re.MULTILINE)
    assert set(listed) == {row(metric) for metric in METRICS}
    assert len(listed) == len(METRICS)


def test_metrics_are_in_the_order_of_the_registry() -> None:
    """Each group has a table of its own, so that what belongs together stands together."""
    listed = re.findall(r"^\| `(edgeweave:\w+)`", section("Metrics"), re.MULTILINE)
    assert listed == [metric.name for metric in METRICS]
    assert len(re.findall(r"^\| metric \|", section("Metrics"), re.MULTILINE)) == len(GROUPS)


def test_the_metrics_of_the_process_are_named() -> None:
    """They come from the client library."""
    assert set(re.findall(r"`(process_\w+)`", section("Metrics"))) == set(PROCESS_METRICS)


def test_every_label_has_its_values_on_the_page() -> None:
    """A query is written by them."""
    listed = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section("Labels"), re.MULTILINE))
    assert set(listed) == {label for metric in METRICS for label in metric.labels}


@pytest.mark.parametrize("label", ENUMS)
def test_values_of_a_label_are_those_of_the_code(label: str) -> None:
    """A value that was added is listed."""
    (text,) = re.findall(rf"^\| `{label}` \| (.*) \|$", section("Labels"), re.MULTILINE)
    assert re.findall(r"`(\w+)`", text.partition(";")[0]) == ENUMS[label]
