"""Metrics of requests as they are now."""

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric as Family

from edgeweave.interleave.scheduler_core import SchedulerCore
from edgeweave.metrics.families import histogram, number, numbers
from edgeweave.metrics.request_meter import RequestMeter
from edgeweave.metrics.request_metrics import RequestMetric


def request_families(core: SchedulerCore, meter: RequestMeter) -> Iterator[Family]:
    """Yield every metric of requests, but for KV, which is a session's."""
    yield number(RequestMetric.NUM_RUNNING, core.session.num_live if core.session is not None else 0)
    yield number(RequestMetric.NUM_WAITING, len(core.waiting))
    for times in (
        meter.first_token,
        meter.next_token,
        meter.per_token,
        meter.whole,
        meter.queue,
        meter.prefill,
        meter.decode,
        meter.inference,
        meter.prompt_tokens,
        meter.output_tokens,
    ):
        yield histogram(times)
    yield number(RequestMetric.PROMPT_TOKENS, meter.num_prompt_tokens)
    yield number(RequestMetric.GENERATION_TOKENS, core.num_output_tokens)
    yield number(RequestMetric.NUM_PREEMPTIONS, core.num_preemptions)
    yield numbers(RequestMetric.SUCCESS, [((reason,), num) for reason, num in meter.successes.items()])
    yield numbers(RequestMetric.FAILURE, [((error,), num) for error, num in meter.failures.items()])
    yield number(RequestMetric.PREFIX_CACHE_QUERIES, 0)
    yield number(RequestMetric.PREFIX_CACHE_HITS, 0)
