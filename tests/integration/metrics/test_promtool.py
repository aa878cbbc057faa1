"""What `promtool` says of configuration, alerts, queries and pages, on machines that have it (Debian: `prometheus`)."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from prometheus_client import generate_latest

from edgeweave.metrics.metric import Source
from fakes.monitoring import ALERTS_TEST, CONFIG, dashboard_expressions
from fakes.told import REGISTRIES

PROMTOOL = shutil.which("promtool")
pytestmark = pytest.mark.skipif(PROMTOOL is None, reason="promtool is not on the PATH; Debian has it in `prometheus`")
COLON = " metric names should not contain ':'"
"""What promtool holds against every name that we share with other inference servers."""
VARIABLES = {"$__rate_interval": "5m", "$__interval": "1m", "$scheduler": ".*"}


def promtool(*words: str, given: bytes = b"") -> tuple[int, str]:
    """Return the exit code of promtool and all that it says."""
    done = subprocess.run([PROMTOOL or "promtool", *words], input=given, capture_output=True, check=False)  # noqa: S603 - fixed words
    return done.returncode, (done.stdout + done.stderr).decode()


def test_configuration_and_alerts_are_valid() -> None:
    """Prometheus would not start with them otherwise."""
    code, said = promtool("check", "config", str(CONFIG))
    assert code == 0, said
    assert "rules found" in said


def test_alerts_fire_when_all_is_wrong_and_not_when_all_is_well() -> None:
    """Each of them, over an hour of a mesh."""
    code, said = promtool("test", "rules", str(ALERTS_TEST))
    assert code == 0, said


def test_queries_of_the_dashboard_are_valid(tmp_path: Path) -> None:
    """With the variables of Grafana filled in."""
    rules = []
    for number, expression in enumerate(dashboard_expressions()):
        text = expression.text
        for variable, value in VARIABLES.items():
            text = text.replace(variable, value)
        assert "$" not in text, expression.place
        rules.append({"record": f"panel:{number}", "expr": text})
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    code, said = promtool("check", "rules", str(file))
    assert code == 0, said


@pytest.mark.parametrize("source", REGISTRIES)
def test_pages_are_clean_but_for_the_colon(source: Source) -> None:
    """Units, helps and types are as they should be."""
    _, said = promtool("check", "metrics", given=generate_latest(REGISTRIES[source]()))
    assert [line for line in said.splitlines() if not line.endswith(COLON)] == []
    assert COLON in said
