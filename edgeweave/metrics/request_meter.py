"""Counts what clients see of their requests: once a token, and once a request.

Knows requests by their ids, from submission to their last token. Does not know why they wait.
"""

from collections import Counter
from dataclasses import dataclass, field

from edgeweave.errors import EdgeweaveError
from edgeweave.interleave.nouns import FinishReason
from edgeweave.interleave.requests import Request
from edgeweave.metrics.histogram import Histogram
from edgeweave.metrics.request_metrics import RequestMetric

ABORT = "abort"
REASONS = (*(reason.name.lower() for reason in FinishReason), ABORT)


@dataclass(slots=True)
class _Open:
    """A request that has not ended; times are microseconds of the scheduler's clock."""

    num_prompt: int
    arrived_us: int
    admitted_us: int | None = None
    first_us: int | None = None
    last_us: int = 0
    num_emitted: int = 0


@dataclass(slots=True)
class RequestMeter:
    """Requests of one scheduler. All that it costs for a token is a look-up and a search in a list of bounds."""

    first_token: Histogram = field(default_factory=lambda: Histogram(RequestMetric.TIME_TO_FIRST_TOKEN))
    next_token: Histogram = field(default_factory=lambda: Histogram(RequestMetric.INTER_TOKEN_LATENCY))
    per_token: Histogram = field(default_factory=lambda: Histogram(RequestMetric.TIME_PER_OUTPUT_TOKEN))
    whole: Histogram = field(default_factory=lambda: Histogram(RequestMetric.E2E_LATENCY))
    queue: Histogram = field(default_factory=lambda: Histogram(RequestMetric.QUEUE_TIME))
    prefill: Histogram = field(default_factory=lambda: Histogram(RequestMetric.PREFILL_TIME))
    decode: Histogram = field(default_factory=lambda: Histogram(RequestMetric.DECODE_TIME))
    inference: Histogram = field(default_factory=lambda: Histogram(RequestMetric.INFERENCE_TIME))
    prompt_tokens: Histogram = field(default_factory=lambda: Histogram(RequestMetric.REQUEST_PROMPT_TOKENS))
    output_tokens: Histogram = field(default_factory=lambda: Histogram(RequestMetric.REQUEST_GENERATION_TOKENS))
    num_prompt_tokens: int = 0
    successes: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(REASONS, 0)))
    failures: Counter[str] = field(default_factory=Counter)
    _open: dict[str, _Open] = field(default_factory=dict)

    @property
    def num_open(self) -> int:
        """Requests that have not ended."""
        return len(self._open)

    def submit(self, request: Request) -> None:
        """A request came."""
        self._open[request.request_id] = _Open(len(request.prompt), request.arrived_us)

    def admit(self, request_id: str, *, now_us: int) -> None:
        """A request was admitted; after a preemption it is so again, and that does not count."""
        request = self._open.get(request_id)
        if request is not None and request.admitted_us is None:
            request.admitted_us = now_us
            self.queue.observe(now_us - request.arrived_us)

    def emit(self, request_id: str, *, now_us: int) -> None:
        """A request got a token."""
        request = self._open.get(request_id)
        if request is None:
            return
        if request.first_us is None:
            request.first_us = now_us
            self._take_first(request, now_us)
        else:
            self.next_token.observe(now_us - request.last_us)
        request.last_us = now_us
        request.num_emitted += 1

    def finish(self, request_id: str, reason: FinishReason, *, num_output: int) -> None:
        """A request got its last token; `num_output` counts those as well that it came with."""
        request = self._open.pop(request_id, None)
        if request is None or request.first_us is None or request.admitted_us is None:
            return
        self.successes[reason.name.lower()] += 1
        decode_us = request.last_us - request.first_us
        self.whole.observe(request.last_us - request.arrived_us)
        self.inference.observe(request.last_us - request.admitted_us)
        self.decode.observe(decode_us)
        if request.num_emitted > 1:
            self.per_token.observe(decode_us // (request.num_emitted - 1))
        self.prompt_tokens.observe(request.num_prompt)
        self.output_tokens.observe(num_output)

    def refuse(self, request_id: str, error: EdgeweaveError) -> None:
        """A request ended with an error."""
        if self._open.pop(request_id, None) is not None:
            self.failures[type(error).__name__] += 1

    def abort(self, request_id: str) -> None:
        """The client of a request left before its end."""
        if self._open.pop(request_id, None) is not None:
            self.successes[ABORT] += 1

    def _take_first(self, request: _Open, now_us: int) -> None:
        self.num_prompt_tokens += request.num_prompt
        self.first_token.observe(now_us - request.arrived_us)
        if request.admitted_us is not None:
            self.prefill.observe(now_us - request.admitted_us)
