"""What the link emulator adds to a round trip, and how much it carries; wants a quiet machine (`make test-timing`)."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from edgeweave.link import LinkProcess

DELAY_MS = 5.0
NUM_TRIPS = 400
PAUSE_S = 0.003
NUM_BYTES = 1 << 30
PIECE = bytes(1 << 20)


@contextmanager
def echo_server() -> Iterator[str]:
    """Echo what comes on one connection, and give the address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            sock, _ = listener.accept()
            with sock, contextlib.suppress(ConnectionError):  # a link that ends resets what is open
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while content := sock.recv(1 << 20):
                    sock.sendall(content)

        thread = threading.Thread(target=serve)
        thread.start()
        yield "{}:{}".format(*listener.getsockname())
        thread.join()


@contextmanager
def count_server() -> Iterator[str]:
    """Read one connection to its end, answer with one byte, and give the address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            sock, _ = listener.accept()
            with sock:
                while sock.recv(1 << 20):
                    pass
                sock.sendall(b"!")

        thread = threading.Thread(target=serve)
        thread.start()
        yield "{}:{}".format(*listener.getsockname())
        thread.join()


def dial(link: LinkProcess) -> socket.socket:
    host, _, port = link.address.rpartition(":")
    sock = socket.create_connection((host, int(port)), timeout=30)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def trip_ms(sock: socket.socket) -> float:
    begin_s = time.perf_counter()
    sock.sendall(b"x" * 200)
    sock.recv(200)
    elapsed_s = time.perf_counter() - begin_s
    threading.Event().wait(PAUSE_S)
    return elapsed_s * 1000


@pytest.mark.timing
def test_a_quiet_link_adds_less_than_a_millisecond_and_little_spread() -> None:
    """At 5 ms one way: p95 below 11 ms, and p95 within .3 ms of p5."""
    with echo_server() as target, LinkProcess(target=target, delay_ms=DELAY_MS) as link, dial(link) as sock:
        trip_ms(sock)
        trips_ms = sorted(trip_ms(sock) for _ in range(NUM_TRIPS))
    p5, p50, p95 = (trips_ms[int(NUM_TRIPS * share)] for share in (0.05, 0.5, 0.95))
    print(f"round trip over {DELAY_MS} ms: p5 {p5:.2f}, p50 {p50:.2f}, p95 {p95:.2f}, max {trips_ms[-1]:.2f} ms")
    assert trips_ms[0] >= 2 * DELAY_MS
    assert p95 < 2 * DELAY_MS + 1
    assert p95 - p5 < 0.3


@pytest.mark.timing
def test_a_link_carries_five_gbit_per_s() -> None:
    """A gigabyte in one direction, over one connection."""
    with count_server() as target, LinkProcess(target=target, delay_ms=DELAY_MS) as link, dial(link) as sock:
        begin_s = time.perf_counter()
        for _ in range(NUM_BYTES // len(PIECE)):
            sock.sendall(PIECE)
        sock.shutdown(socket.SHUT_WR)
        sock.recv(1)
        gbit_per_s = NUM_BYTES * 8 / 1e9 / (time.perf_counter() - begin_s)
    print(f"{gbit_per_s:.1f} Gbit/s")
    assert gbit_per_s > 5
