"""Metrics of the mesh: sessions, engines, link and plan, as the scheduler hears of them."""

from typing import Final

from edgeweave.metrics.metric import REQUEST_BOUNDS_S, ROWS_BOUNDS, UNIT_BOUNDS_S, By, Source

_BY = By(Source.SCHEDULER)


class MeshMetric:
    """The mesh and its session. What is held in it is absent while there is none."""

    SESSION_STATE: Final = _BY.gauge(
        "edgeweave:session_state", "none", "1 for the state that the session is in, else 0.", "state"
    )
    SESSIONS: Final = _BY.counter("edgeweave:sessions_total", "sessions", "Sessions that began to serve.")
    NUM_CHUNKS: Final = _BY.gauge("edgeweave:num_chunks_in_flight", "chunks", "Prefill chunks that are away.")
    NUM_SEQUENCES: Final = _BY.gauge(
        "edgeweave:num_sequences", "sequences", "Sequences by state: prefilling, decoding, releasing.", "state"
    )
    KV_BLOCKS: Final = _BY.gauge(
        "edgeweave:kv_blocks", "blocks", "KV blocks of an engine by state: reserved, free.", "engine", "state"
    )
    DEPARTURES: Final = _BY.counter(
        "edgeweave:departures_total",
        "units",
        "Units that an engine chose by other rules than the scheduler's replay: 0 unless there is a bug.",
    )


class TimeMetric:
    """Where the time of each engine goes: busy + bubbles + idle is the time that its sessions lasted."""

    BUSY: Final = _BY.counter("edgeweave:busy_seconds_total", "seconds", "Time in which a unit ran.", "engine")
    IDLE: Final = _BY.counter(
        "edgeweave:idle_seconds_total", "seconds", "Time in which no sequence was open.", "engine"
    )
    BUBBLES: Final = _BY.counter(
        "edgeweave:bubble_seconds_total",
        "seconds",
        "Time with open sequences and nothing to run, by cause, and by kind of the unit that ended it.",
        *("engine", "kind", "cause"),
    )
    UNIT_TIME: Final = _BY.histogram(
        "edgeweave:unit_time_seconds",
        "seconds",
        "Time of one unit, by stage.",
        *("engine", "stage"),
        bounds=UNIT_BOUNDS_S,
    )
    STEP_ROWS: Final = _BY.histogram(
        "edgeweave:step_rows",
        "rows",
        "Rows of a decode step in the cloud, of a turnaround at the edge.",
        "engine",
        bounds=ROWS_BOUNDS,
    )
    SKIPPED_ROWS: Final = _BY.counter(
        "edgeweave:skipped_rows_total", "rows", "Rows left out because their sequence was released.", "engine"
    )


class LinkMetric:
    """What crosses the link, how long that takes, and how much of it is hidden. Absent where there is no cloud."""

    ROUND_TRIP: Final = _BY.gauge(
        "edgeweave:round_trip_seconds",
        "seconds",
        "Shortest round trip of a step of late, without its time in the cloud.",
    )
    PREFILL_RATE: Final = _BY.gauge(
        "edgeweave:prefill_lane_bytes_per_second", "bytes/s", "Rate of the prefill lane when the session opened it."
    )
    HOP_BYTES: Final = _BY.counter(
        "edgeweave:hop_bytes_total",
        "bytes",
        "Hidden states that arrived: up at the cloud, down at the edge.",
        "direction",
    )
    CHUNK_AWAY: Final = _BY.histogram(
        "edgeweave:chunk_away_seconds",
        "seconds",
        "From a chunk's first frame up to its last frame down.",
        bounds=REQUEST_BOUNDS_S,
    )
    STEP_AWAY: Final = _BY.histogram(
        "edgeweave:step_away_seconds",
        "seconds",
        "From a step's first frame up to its last frame down.",
        bounds=UNIT_BOUNDS_S,
    )
    AWAY: Final = _BY.counter(
        "edgeweave:away_seconds_total",
        "seconds",
        "Time of chunks and steps away from the edge, and of turnarounds, summed up.",
    )
    INSIDE: Final = _BY.counter(
        "edgeweave:inside_seconds_total", "seconds", "The part of it that chunks and steps spent in the cloud."
    )
    HIDDEN_SHARE: Final = _BY.gauge(
        "edgeweave:hidden_share",
        "ratio",
        "Share of the time outside the cloud in which the cloud had other work, in this session.",
    )


class PlanMetric:
    """The plan in force."""

    INFO: Final = _BY.gauge("edgeweave:plan_info", "none", "1, with the kind of the plan in force.", "kind")
    NUMBER: Final = _BY.gauge("edgeweave:plan_number", "none", "Number of the plan; it rises with each change.")
    MAX_PREFILLS: Final = _BY.gauge("edgeweave:plan_max_prefills", "chunks", "Most chunks in flight.")
    MAX_STEPS: Final = _BY.gauge("edgeweave:plan_max_steps", "steps", "Most decode steps in flight.")
    FILL_TO_ROWS: Final = _BY.gauge(
        "edgeweave:plan_fill_to_rows", "rows", "Sequences through their prefill for which a step waits."
    )
    MIN_SEGMENT: Final = _BY.gauge("edgeweave:plan_min_segment_seconds", "seconds", "Shortest time of a segment.")
    DECODE_RETURN: Final = _BY.gauge(
        "edgeweave:plan_decode_return_seconds",
        "seconds",
        "Expected time from the end of a step to the next one's arrival.",
    )
