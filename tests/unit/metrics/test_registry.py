"""The registry names what is told, and every service tells what the registry says that it does."""

import re
from collections.abc import Iterable
from itertools import pairwise

import pytest

from edgeweave.metrics.metric import Kind, Metric, Source
from edgeweave.metrics.registry import METRICS, PROCESS_METRICS, metric_named
from fakes.metered import Scraped
from fakes.told import REGISTRIES

KNOWN_TO_DASHBOARDS = (
    "num_requests_running",
    "num_requests_waiting",
    "time_to_first_token_seconds",
    "inter_token_latency_seconds",
    "request_time_per_output_token_seconds",
    "e2e_request_latency_seconds",
    "request_queue_time_seconds",
    "request_prefill_time_seconds",
    "request_decode_time_seconds",
    "request_inference_time_seconds",
    "request_prompt_tokens",
    "request_generation_tokens",
    "prompt_tokens_total",
    "generation_tokens_total",
    "num_preemptions_total",
    "request_success_total",
    "prefix_cache_queries_total",
    "prefix_cache_hits_total",
    "kv_cache_usage_perc",
)


def measured_by(source: Source) -> dict[str, Metric]:
    return {metric.name: metric for metric in METRICS if metric.source in {source, Source.ALL}}


def names_in(names: Iterable[str]) -> set[str]:
    """Names of metrics for names of samples, without those of the process."""
    found = {name: metric_named(name) for name in names if name not in PROCESS_METRICS}
    assert [name for name, metric in found.items() if metric is None] == []
    return {metric.name for metric in found.values() if metric is not None}


@pytest.mark.parametrize("source", REGISTRIES)
def test_a_service_tells_each_metric_that_it_measures_and_no_other(source: Source) -> None:
    """A name that is told and not in the registry, or there and never told, is a mistake."""
    told = Scraped.of(REGISTRIES[source]())
    assert names_in(name for name, _ in told.samples) == set(measured_by(source))


@pytest.mark.parametrize("source", REGISTRIES)
def test_labels_are_those_of_the_registry(source: Source) -> None:
    """`le` is that of a histogram's buckets."""
    for name, labels in Scraped.of(REGISTRIES[source]()).samples:
        metric = metric_named(name)
        if metric is not None:
            assert {label for label, _ in labels} - {"le"} == set(metric.labels), name


@pytest.mark.parametrize("source", REGISTRIES)
def test_types_and_help_are_those_of_the_registry(source: Source) -> None:
    """Prometheus shows both."""
    text = Scraped.of(REGISTRIES[source]()).text
    for name, metric in measured_by(source).items():
        assert f"# TYPE {name} {metric.kind.value}\n" in text
        assert f"# HELP {name} {metric.help}\n" in text


def test_names_that_dashboards_know_are_there() -> None:
    """Dashboards for inference servers work after a change of the prefix."""
    names = {metric.name for metric in METRICS}
    assert {f"edgeweave:{name}" for name in KNOWN_TO_DASHBOARDS} <= names


def test_names_are_unique_and_say_their_unit() -> None:
    """Seconds and bytes are in the name, and only a counter ends in `_total`."""
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    for metric in METRICS:
        assert re.fullmatch(r"edgeweave:[a-z][a-z0-9_]*", metric.name)
        assert metric.name.endswith("_total") == (metric.kind is Kind.COUNTER), metric.name
        plain = metric.name.removesuffix("_total")
        assert plain.endswith("_seconds") == (metric.unit == "seconds"), metric.name
        assert plain.endswith("_bytes") == (metric.unit == "bytes"), metric.name
        assert re.fullmatch(r"\S.*[.]", metric.help), metric.name
        assert "|" not in metric.help  # it stands in a table


def test_only_histograms_have_bounds_and_these_rise() -> None:
    """A value belongs to one bucket."""
    for metric in METRICS:
        assert bool(metric.bounds) == (metric.kind is Kind.HISTOGRAM), metric.name
        assert all(low < high for low, high in pairwise(metric.bounds)), metric.name


def test_a_sample_of_a_histogram_leads_to_its_metric() -> None:
    """Its own name is no sample, and the endings belong to histograms alone."""
    found = metric_named("edgeweave:unit_time_seconds_bucket")
    assert found is not None
    assert found.name == "edgeweave:unit_time_seconds"
    assert metric_named("edgeweave:unit_time_seconds") is None
    assert metric_named("edgeweave:sessions_total_count") is None
    assert metric_named("edgeweave:sessions_total") is not None
