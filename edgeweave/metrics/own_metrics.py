"""Metrics that a service measures of itself: an engine, the gateway, and the build of each."""

from typing import Final

from edgeweave.metrics.metric import REQUEST_BOUNDS_S, ROWS_BOUNDS, UNIT_BOUNDS_S, By, Source

_BY_ENGINE = By(Source.ENGINE)
_BY_GATEWAY = By(Source.GATEWAY)


class EngineMetric:
    """An engine by itself, for whoever runs it.

    Its time is the same that the scheduler tells without `engine_` in the name; the two are never added up.
    """

    BUSY: Final = _BY_ENGINE.counter(
        "edgeweave:engine_busy_seconds_total", "seconds", "Time in which a unit ran.", "engine"
    )
    IDLE: Final = _BY_ENGINE.counter(
        "edgeweave:engine_idle_seconds_total", "seconds", "Time in which no sequence was open.", "engine"
    )
    BUBBLES: Final = _BY_ENGINE.counter(
        "edgeweave:engine_bubble_seconds_total",
        "seconds",
        "Time with open sequences and nothing to run, by cause, and by kind of the unit that ended it.",
        *("engine", "kind", "cause"),
    )
    UNIT_TIME: Final = _BY_ENGINE.histogram(
        "edgeweave:engine_unit_time_seconds",
        "seconds",
        "Time of one unit, by stage.",
        *("engine", "stage"),
        bounds=UNIT_BOUNDS_S,
    )
    STEP_ROWS: Final = _BY_ENGINE.histogram(
        "edgeweave:engine_step_rows",
        "rows",
        "Rows of a decode step in the cloud, of a turnaround at the edge.",
        "engine",
        bounds=ROWS_BOUNDS,
    )
    SENT_BYTES: Final = _BY_ENGINE.counter(
        "edgeweave:lane_sent_bytes_total",
        "bytes",
        "Hidden states that this engine sent on a lane.",
        *("engine", "lane"),
    )
    RECEIVED_BYTES: Final = _BY_ENGINE.counter(
        "edgeweave:lane_received_bytes_total",
        "bytes",
        "Hidden states that this engine received on a lane.",
        *("engine", "lane"),
    )
    LANES: Final = _BY_ENGINE.counter(
        "edgeweave:lanes_opened_total", "lanes", "Times that a lane was opened at this engine.", *("engine", "lane")
    )


class HttpMetric:
    """HTTP at the gateway. `path` is that of a route, or none where no route was found or a key was wrong."""

    REQUESTS: Final = _BY_GATEWAY.counter(
        "edgeweave:http_requests_total",
        "requests",
        "Requests that were answered, by status; none where the client left before it had one.",
        *("path", "status"),
    )
    DURATION: Final = _BY_GATEWAY.histogram(
        "edgeweave:http_request_duration_seconds",
        "seconds",
        "From the head of a request to the last byte of its answer, streams included.",
        "path",
        bounds=REQUEST_BOUNDS_S,
    )
    IN_PROGRESS: Final = _BY_GATEWAY.gauge(
        "edgeweave:http_requests_in_progress", "requests", "Requests that are being answered."
    )
    READY: Final = _BY_GATEWAY.gauge("edgeweave:gateway_ready", "none", "1 while a request would be served, else 0.")


class BuildMetric:
    """What runs."""

    INFO: Final = By(Source.ALL).gauge(
        "edgeweave:build_info", "none", "1, with the service and its version.", *("service", "version")
    )
