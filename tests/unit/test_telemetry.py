"""Logs are one event a line with time and service; spans cost nothing where nobody collects them."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
import structlog
from opentelemetry.sdk.resources import SERVICE_NAME

from edgeweave.telemetry import Attribute, SpanName, configure_logging, span_processor, tracer_provider


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


def test_a_json_line_holds_event_time_level_service_and_values(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info", fmt="json", service="edge")
    structlog.get_logger().info("lane_opened", lane="decode")
    line = json.loads(capsys.readouterr().err)
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "lane_opened", "level": "info", "service": "edge", "lane": "decode"}


def test_the_standard_library_logs_in_the_same_form(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("warning", fmt="json", service="edge")
    logging.getLogger("elsewhere").warning("low on %s", "ink")
    logging.getLogger("elsewhere").info("not written")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["event"], line["service"]) for line in lines] == [("low on ink", "edge")]


@pytest.mark.parametrize("fmt", ["json", "console"])
def test_a_trace_shows_no_local_variables(fmt: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Prompts are among them."""
    configure_logging("info", fmt="json" if fmt == "json" else "console", service="edge")
    prompt = "secret"[::-1]
    try:
        _ = len(prompt) / 0
    except ZeroDivisionError:
        structlog.get_logger().exception("call_failed")
    written = capsys.readouterr().err
    assert "ZeroDivisionError" in written
    assert prompt not in written


def test_without_a_collector_spans_record_nothing() -> None:
    provider = tracer_provider("edge", processor=span_processor(None))
    with provider.get_tracer("t").start_as_current_span(SpanName.SEGMENT) as span:
        assert not span.is_recording()


def test_with_a_collector_spans_record_under_the_name_of_the_service() -> None:
    provider = tracer_provider("edge", processor=span_processor("http://127.0.0.1:1"))
    assert provider.resource.attributes[SERVICE_NAME] == "edgeweave-edge"
    assert provider.get_tracer("t").start_span(SpanName.HOP).is_recording()
    provider.shutdown()


def test_names_are_unique() -> None:
    for names in (SpanName, Attribute):
        values = [value for name, value in vars(names).items() if name.isupper()]
        assert len(values) == len(set(values))


@pytest.mark.parametrize("service", ["scheduler", "edge", "cloud", "gateway"])
def test_grpc_is_told_to_be_silent_before_it_is_imported(service: str) -> None:
    """Its C core reads the variable once; its lines would stand between ours in a form of their own."""
    seen = f"import os, sys, edgeweave_{service}; print(os.environ['GRPC_VERBOSITY'], 'grpc' in sys.modules)"
    environ = {name: value for name, value in os.environ.items() if name != "GRPC_VERBOSITY"}
    done = subprocess.run([sys.executable, "-c", seen], env=environ, capture_output=True, text=True, check=True)  # noqa: S603 - our own code
    assert done.stdout == "NONE False\n"
