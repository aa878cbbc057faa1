"""Metrics of requests, under the names that dashboards of inference servers know, with our prefix."""

from typing import Final

from edgeweave.metrics.metric import REQUEST_BOUNDS_S, TOKEN_BOUNDS_S, TOKENS_BOUNDS, By, Source

_BY = By(Source.SCHEDULER)


class RequestMetric:
    """Requests as the scheduler serves them: from the moment that it has one to its last token."""

    NUM_RUNNING: Final = _BY.gauge(
        "edgeweave:num_requests_running", "requests", "Requests that are prefilled or decode."
    )
    NUM_WAITING: Final = _BY.gauge("edgeweave:num_requests_waiting", "requests", "Requests that wait for admission.")
    TIME_TO_FIRST_TOKEN: Final = _BY.histogram(
        "edgeweave:time_to_first_token_seconds",
        "seconds",
        "From the arrival of a request at the scheduler to its first token.",
        bounds=REQUEST_BOUNDS_S,
    )
    INTER_TOKEN_LATENCY: Final = _BY.histogram(
        "edgeweave:inter_token_latency_seconds",
        "seconds",
        "From one token of a request to its next.",
        bounds=TOKEN_BOUNDS_S,
    )
    TIME_PER_OUTPUT_TOKEN: Final = _BY.histogram(
        "edgeweave:request_time_per_output_token_seconds",
        "seconds",
        "Mean time per token after the first, of a request that finished.",
        bounds=TOKEN_BOUNDS_S,
    )
    E2E_LATENCY: Final = _BY.histogram(
        "edgeweave:e2e_request_latency_seconds",
        "seconds",
        "From the arrival of a request to its last token.",
        bounds=REQUEST_BOUNDS_S,
    )
    QUEUE_TIME: Final = _BY.histogram(
        "edgeweave:request_queue_time_seconds",
        "seconds",
        "From the arrival of a request to its first admission.",
        bounds=REQUEST_BOUNDS_S,
    )
    PREFILL_TIME: Final = _BY.histogram(
        "edgeweave:request_prefill_time_seconds",
        "seconds",
        "From the first admission of a request to its first token.",
        bounds=REQUEST_BOUNDS_S,
    )
    DECODE_TIME: Final = _BY.histogram(
        "edgeweave:request_decode_time_seconds",
        "seconds",
        "From the first token of a request to its last.",
        bounds=REQUEST_BOUNDS_S,
    )
    INFERENCE_TIME: Final = _BY.histogram(
        "edgeweave:request_inference_time_seconds",
        "seconds",
        "From the first admission of a request to its last token.",
        bounds=REQUEST_BOUNDS_S,
    )
    PROMPT_TOKENS: Final = _BY.counter(
        "edgeweave:prompt_tokens_total",
        "tokens",
        "Prompt tokens of requests that got a first token; a recompute does not count again.",
    )
    GENERATION_TOKENS: Final = _BY.counter(
        "edgeweave:generation_tokens_total", "tokens", "Tokens that were sampled for requests."
    )
    REQUEST_PROMPT_TOKENS: Final = _BY.histogram(
        "edgeweave:request_prompt_tokens", "tokens", "Prompt tokens of a request that finished.", bounds=TOKENS_BOUNDS
    )
    REQUEST_GENERATION_TOKENS: Final = _BY.histogram(
        "edgeweave:request_generation_tokens",
        "tokens",
        "Output tokens of a request that finished, those that it came with included.",
        bounds=TOKENS_BOUNDS,
    )
    NUM_PREEMPTIONS: Final = _BY.counter(
        "edgeweave:num_preemptions_total", "preemptions", "Sequences that were released for want of KV."
    )
    SUCCESS: Final = _BY.counter(
        "edgeweave:request_success_total",
        "requests",
        "Requests that ended without an error: stop (a stop token), length (a limit), abort (the client left).",
        "finished_reason",
    )
    FAILURE: Final = _BY.counter(
        "edgeweave:request_failure_total", "requests", "Requests that ended with an error, by its class.", "error"
    )
    PREFIX_CACHE_QUERIES: Final = _BY.counter(
        "edgeweave:prefix_cache_queries_total", "tokens", "Always 0: there is no prefix cache that could be asked."
    )
    PREFIX_CACHE_HITS: Final = _BY.counter(
        "edgeweave:prefix_cache_hits_total", "tokens", "Always 0: there is no prefix cache that could have them."
    )
    KV_CACHE_USAGE: Final = _BY.gauge(
        "edgeweave:kv_cache_usage_perc",
        "ratio",
        "Share of an engine's KV blocks that is reserved, 0 to 1.",
        "engine",
    )
