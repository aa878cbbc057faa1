"""What Prometheus and Grafana are given: the expressions in the files under `deploy/`."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
ALERTS = DEPLOY / "prometheus" / "alerts.yaml"
CONFIG = DEPLOY / "prometheus" / "prometheus.yaml"
DASHBOARD = DEPLOY / "grafana" / "edgeweave.json"
ALERTS_TEST = Path(__file__).parents[1] / "integration" / "metrics" / "alerts_test.yaml"
_SELECTOR = re.compile(r"\b((?:edgeweave:|process_)\w+|up\b)(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')


@dataclass(frozen=True, slots=True)
class Expression:
    """One query, and where it stands; `legend` is the name of its series."""

    place: str
    text: str
    legend: str = ""

    @property
    def selectors(self) -> list[tuple[str, list[tuple[str, str, str]]]]:
        """Each name of a sample in it, with label, operator and value of each matcher behind it."""
        return [(name, _MATCHER.findall(matchers)) for name, matchers in _SELECTOR.findall(self.text)]

    @property
    def grouped_by(self) -> set[str]:
        """Labels that it sums up by."""
        return {label.strip() for group in re.findall(r"\bby \(([^)]*)\)", self.text) for label in group.split(",")}


def dashboard() -> dict[str, Any]:
    """Return the dashboard."""
    return dict(json.loads(DASHBOARD.read_text()))


def panels() -> list[dict[str, Any]]:
    """Return the panels that show something."""
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def alerts() -> list[dict[str, Any]]:
    """Return all alerts."""
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def dashboard_expressions() -> Iterator[Expression]:
    """Yield what the dashboard asks for."""
    for panel in panels():
        for target in panel["targets"]:
            yield Expression(f"panel {panel['title']}", target["expr"], target["legendFormat"])
    for annotation in dashboard()["annotations"]["list"]:
        yield Expression(f"annotation {annotation['name']}", annotation["expr"])


def alert_expressions() -> Iterator[Expression]:
    """Yield what the alerts ask for."""
    for alert in alerts():
        yield Expression(f"alert {alert['alert']}", alert["expr"])
