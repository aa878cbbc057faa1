"""The gRPC options that both ends of a connection must agree on.

Knows why each is set. Does not know who dials whom.
"""

from dataclasses import dataclass

Option = tuple[str, int | str]

_LANE_WINDOW_BYTES = 128 << 20
_LANE_HTTP2_FRAME_BYTES = 1 << 20
_NO_LIMIT = -1


@dataclass(frozen=True, slots=True)
class Keepalive:
    """How soon a silent link is noticed: a ping every `interval_s`, answered within `timeout_s`."""

    interval_s: float = 10.0
    timeout_s: float = 10.0


DEFAULT_KEEPALIVE = Keepalive()


def common_options(keepalive: Keepalive) -> list[Option]:
    """Return what every channel and server sets."""
    return [
        # The default of 4 MiB ends streams with RESOURCE_EXHAUSTED; sizes are checked where their meaning is known.
        ("grpc.max_send_message_length", _NO_LIMIT),
        ("grpc.max_receive_message_length", _NO_LIMIT),
        ("grpc.keepalive_time_ms", round(keepalive.interval_s * 1000)),
        ("grpc.keepalive_timeout_ms", round(keepalive.timeout_s * 1000)),
        # Without this one a ping is given up after a minute, whatever the keepalive says.
        ("grpc.http2.ping_timeout_ms", round(keepalive.timeout_s * 1000)),
        ("grpc.keepalive_permit_without_calls", 1),
        # Streams are silent for long in an idle mesh, and pings must go on all the same.
        ("grpc.http2.max_pings_without_data", 0),
    ]


def lane_options() -> list[Option]:
    """Return what both ends of a lane's connection set, so that a chunk never waits for a window.

    By default the window starts small and grows with the measured bandwidth, one round trip at a time; a chunk of
    20 MB on a cold lane would take several. Here the window is larger than any chunk from the start. And a message of
    a quarter of a megabyte is one frame of HTTP/2, not sixteen of them: a tenth less of a core for the same bytes.
    """
    return [
        ("grpc.http2.bdp_probe", 0),
        ("grpc.http2.lookahead_bytes", _LANE_WINDOW_BYTES),
        ("grpc.http2.max_frame_size", _LANE_HTTP2_FRAME_BYTES),
    ]
