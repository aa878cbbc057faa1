"""Dashboard and alerts ask for what is told: names, labels and values of the registry; and alerts say what to do."""

import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from edgeweave.client.mesh_state import SessionState
from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import BubbleCause, Lane, Stage
from edgeweave.interleave.requests import Attempt
from edgeweave.metrics.engine_meter import BubbleKind
from edgeweave.metrics.registry import PROCESS_METRICS, metric_named
from fakes.monitoring import (
    ALERTS_TEST,
    Expression,
    alert_expressions,
    alerts,
    dashboard,
    dashboard_expressions,
    panels,
)

ROOT = Path(__file__).parents[3]
BY_PROMETHEUS = {"instance", "job", "le"}
VALUES: dict[str, set[str]] = {
    "engine": {side.value for side in Side},
    "kind": {kind.value for kind in BubbleKind},
    "cause": {cause.name.lower() for cause in BubbleCause},
    "stage": {stage.name.lower() for stage in Stage},
    "lane": {lane.name.lower() for lane in Lane},
    "direction": {"up", "down"},
    "state": {state.name.lower() for state in (*SessionState, *Attempt)} | {"free", "reserved"},
    "job": {"gateway", "scheduler", "edge", "cloud"},
}
EXPRESSIONS = [*dashboard_expressions(), *alert_expressions()]


def place_of(expression: Expression) -> str:
    return expression.place


def is_allowed(label: str, pattern: str) -> bool:
    """Whether each alternative of a matcher's value is a value of the label, where these are few."""
    return label not in VALUES or set(pattern.split("|")) <= VALUES[label]


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=place_of)
def test_every_name_is_told_by_somebody(expression: Expression) -> None:
    """A panel of a name that is gone shows nothing, and an alert never fires."""
    names = [name for name, _ in expression.selectors]
    assert names
    assert len(re.findall(r"edgeweave:", expression.text)) == sum(name.startswith("edgeweave:") for name in names)
    for name in names:
        assert name == "up" or name in PROCESS_METRICS or metric_named(name) is not None, name


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=place_of)
def test_every_label_is_one_of_its_metric(expression: Expression) -> None:
    """A matcher of a label that is not there matches nothing; so does a value that never comes."""
    for name, matchers in expression.selectors:
        metric = metric_named(name)
        labels = {*metric.labels, *BY_PROMETHEUS} if metric is not None else BY_PROMETHEUS
        for label, _, pattern in matchers:
            assert label in labels, (name, label)
            assert is_allowed(label, pattern), (name, label, pattern)


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=place_of)
def test_what_is_summed_up_by_is_a_label(expression: Expression) -> None:
    """And what a legend names has not been summed away."""
    metrics = [metric for name, _ in expression.selectors if (metric := metric_named(name)) is not None]
    labels = {label for metric in metrics for label in metric.labels} | BY_PROMETHEUS
    assert expression.grouped_by <= labels
    named = set(re.findall(r"\{\{(\w+)\}\}", expression.legend))
    assert named <= (expression.grouped_by or labels)


def test_a_histogram_is_asked_for_by_its_buckets() -> None:
    """A quantile needs `le`, and a rate."""
    quantiles = [each for each in EXPRESSIONS if "histogram_quantile" in each.text]
    assert len(quantiles) > 5
    for expression in quantiles:
        assert "le" in expression.grouped_by, expression.place
        assert re.search(r"rate\(edgeweave:\w+_bucket", expression.text), expression.place


def test_a_counter_is_asked_for_as_a_rate() -> None:
    """Its height says when the process began."""
    for expression in EXPRESSIONS:
        for counter in re.findall(r"(\w*)\(?((?:edgeweave:|process_)\w+_total)\b", expression.text):
            assert counter[0] in {"rate", "increase"}, (expression.place, counter)


def test_the_dashboard_shows_requests_engines_link_and_kv() -> None:
    """Latency, bubbles by cause, hidden share, round trip and lanes among it."""
    asked = {name for expression in dashboard_expressions() for name, _ in expression.selectors}
    assert asked >= {
        "edgeweave:num_requests_running",
        "edgeweave:num_requests_waiting",
        "edgeweave:time_to_first_token_seconds_bucket",
        "edgeweave:inter_token_latency_seconds_bucket",
        "edgeweave:e2e_request_latency_seconds_bucket",
        "edgeweave:busy_seconds_total",
        "edgeweave:bubble_seconds_total",
        "edgeweave:idle_seconds_total",
        "edgeweave:hidden_share",
        "edgeweave:round_trip_seconds",
        "edgeweave:lane_sent_bytes_total",
        "edgeweave:hop_bytes_total",
        "edgeweave:kv_cache_usage_perc",
    }


@pytest.mark.parametrize("engine", ["cloud", "edge"])
def test_busy_bubbles_and_idle_are_stacked(engine: str) -> None:
    """Together they are the whole time, and each cause has a colour of its own."""
    (panel,) = [panel for panel in panels() if panel["title"] == f"Where the time of the {engine} goes"]
    assert panel["fieldConfig"]["defaults"]["custom"]["stacking"]["mode"] == "normal"
    names = {name for target in panel["targets"] for name, _ in Expression("", target["expr"]).selectors}
    assert names == {f"edgeweave:{what}_seconds_total" for what in ("busy", "bubble", "idle")}
    coloured = [override["matcher"]["options"] for override in panel["fieldConfig"]["overrides"]]
    assert sorted(coloured) == sorted(["busy", "idle", *VALUES["cause"]])


def test_panels_have_places_of_their_own() -> None:
    """Grafana would move them about."""
    everything = dashboard()["panels"]
    assert len({panel["id"] for panel in everything}) == len(everything)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in everything)
    for one, other in combinations([panel["gridPos"] for panel in everything], 2):
        assert not _overlap(one, other), (one, other)


def test_a_dashboard_can_be_imported_anywhere() -> None:
    """Its source is chosen on the page, beginning with the one of the Compose files; every panel says what it shows."""
    page = dashboard()
    (source,) = [variable for variable in page["templating"]["list"] if variable["type"] == "datasource"]
    assert (source["query"], source["current"]["value"]) == ("prometheus", "prometheus")
    for panel in panels():
        assert panel["description"].endswith("."), panel["title"]
        assert {panel["datasource"]["uid"], *(t["datasource"]["uid"] for t in panel["targets"])} == {"${datasource}"}
    assert (page["uid"], page["schemaVersion"] >= 38, "id" in page) == ("edgeweave", True, False)


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"])
def test_an_alert_says_what_is_wrong_and_what_to_do(alert: dict[str, Any]) -> None:
    """Whoever is woken has a place to look at; names in it are those of settings, metrics and logs."""
    assert re.fullmatch(r"Edgeweave[A-Z]\w+", alert["alert"])
    assert alert["labels"]["severity"] in {"critical", "warning"}
    summary, description = alert["annotations"]["summary"], alert["annotations"]["description"]
    assert len(summary) < 120
    assert len(description) > 100
    assert set(re.findall(r"\$labels\.(\w+)", summary)) <= {"instance", "job", "engine"}
    for word in re.findall(r"\b[a-z]+(?:_[a-z0-9]+)+\b", description):
        assert word in _source() or word.upper() in _source(), word


def test_each_alert_is_seen_to_fire() -> None:
    """`alerts_test.yaml` has a mesh in which all is wrong."""
    tests = yaml.safe_load(ALERTS_TEST.read_text())["tests"]
    (wrong,) = [test for test in tests if test["name"] == "all is wrong"]
    (fired,) = [each["exp_samples"] for each in wrong["promql_expr_test"]]
    names = [alert["alert"] for alert in alerts()]
    assert sorted(re.findall(r'alertname="(\w+)"', str(fired))) == sorted(names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("test", yaml.safe_load(ALERTS_TEST.read_text())["tests"], ids=lambda test: test["name"])
def test_alerts_are_tested_with_series_that_exist(test: dict[str, Any]) -> None:
    """One with a label too many or too few would prove nothing."""
    for each in test["input_series"]:
        ((name, matchers),) = Expression("", each["series"]).selectors
        metric = metric_named(name)
        labels = {label for label, _, _ in matchers}
        if metric is not None:
            assert labels - {"le"} == {*metric.labels, "instance"}, each
            assert ("le" in labels) == bool(metric.bounds)
            bounds = {str(float(bound)) for bound in metric.bounds} | {"+Inf"}
            assert {value for label, _, value in matchers if label == "le"} <= bounds, each
        assert all(is_allowed(label, value) for label, _, value in matchers)


def _overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    across = one["x"] < other["x"] + other["w"] and other["x"] < one["x"] + one["w"]
    down = one["y"] < other["y"] + other["h"] and other["y"] < one["y"] + one["h"]
    return across and down


def _source() -> str:
    files = [*(ROOT / "edgeweave").rglob("*.py"), *(ROOT / "services").rglob("*.py")]
    return "\n".join(file.read_text() for file in files if "v1" not in file.parts)
