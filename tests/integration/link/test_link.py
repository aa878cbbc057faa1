"""The link emulator between real sockets."""

import contextlib
import hashlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

import pytest

from edgeweave.link import LinkProcess
from edgeweave.link.link import Link, Target, listen_at
from edgeweave.link.profile import LinkProfile
from edgeweave.link.stats import LinkStats

Serve = Callable[[socket.socket], None]
TIMEOUT_S = 20.0


class Service:
    """A TCP service on a free port; `serve` gets each connection in a thread of its own."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept)]
        self.address = "{}:{}".format(*self._listener.getsockname())

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._run, args=(sock,)))
            self._threads[-1].start()

    def _run(self, sock: socket.socket) -> None:
        with sock, contextlib.suppress(ConnectionError):  # a link that ends resets what is open
            sock.settimeout(TIMEOUT_S)
            self._serve(sock)


def _echo(sock: socket.socket) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while content := sock.recv(1 << 18):
        sock.sendall(content)


def _answer_at_the_end(sock: socket.socket) -> None:
    """Read all that comes, and only then answer with its digest and end."""
    digest = hashlib.sha256()
    while content := sock.recv(1 << 18):
        digest.update(content)
    sock.sendall(digest.digest())


def _dial(link: LinkProcess) -> socket.socket:
    host, _, port = link.address.rpartition(":")
    sock = socket.create_connection((host, int(port)), timeout=TIMEOUT_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _read_all(sock: socket.socket) -> bytes:
    return b"".join(iter(lambda: sock.recv(1 << 16), b""))


def _round_trip_s(sock: socket.socket, content: bytes) -> float:
    begin = time.perf_counter()
    sock.sendall(content)
    num_bytes = 0
    while num_bytes < len(content):
        num_bytes += len(sock.recv(1 << 16))
    return time.perf_counter() - begin


def _cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


@pytest.fixture(scope="module")
def echo() -> Iterator[Service]:
    with Service(_echo) as target:
        yield target


@pytest.fixture(scope="module")
def digest() -> Iterator[Service]:
    with Service(_answer_at_the_end) as target:
        yield target


def test_delay(echo: Service) -> None:
    """A small message takes the delay there and back; the emulator itself adds less than a millisecond."""
    with LinkProcess(target=echo.address, delay_ms=5) as link, _dial(link) as sock:
        _round_trip_s(sock, b"warm")
        trips_ms = sorted(_round_trip_s(sock, b"x" * 200) * 1000 for _ in range(30))
    assert trips_ms[0] >= 10.0
    assert trips_ms[0] < 11.0, trips_ms


def test_rate(digest: Service) -> None:
    """Bytes follow each other at the rate of the link, those of all connections together."""
    with LinkProcess(target=digest.address, delay_ms=0, bandwidth_gbit=0.1) as link, ThreadPoolExecutor(2) as pool:
        begin = time.perf_counter()
        list(pool.map(lambda _: _send_and_check(link, num_bytes=1_500_000), range(2)))
        took_s = time.perf_counter() - begin
    expected_s = 3_000_000 * 8 / 0.1e9
    assert expected_s <= took_s < 2 * expected_s


def _send_and_check(link: LinkProcess, *, num_bytes: int) -> None:
    content = os.urandom(num_bytes)
    with _dial(link) as sock:
        sock.sendall(content)
        sock.shutdown(socket.SHUT_WR)
        assert _read_all(sock) == hashlib.sha256(content).digest()


def test_every_byte_of_many_connections_arrives_in_order(digest: Service) -> None:
    """Twenty connections at once keep their bytes apart and whole; a half-close crosses behind the last byte."""
    with LinkProcess(target=digest.address, delay_ms=1) as link, ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda _: _send_and_check(link, num_bytes=1_000_000), range(20)))
        while (stats := link.read_stats()).num_open:  # a client sees the end a moment before the link forgets it
            pass
    assert stats.num_connections == 20
    assert (stats.to_target_bytes, stats.to_client_bytes) == (20_000_000, 20 * 32)


def test_five_gbit_fit_into_one_core(digest: Service) -> None:
    """The emulator is not the bottleneck of what it is used for: its CPU time leaves room for 5 Gbit/s.

    CPU time, and not time, so that a machine with other work says the same.
    """
    content = bytes(1 << 20)
    num_bytes = 256 * len(content)
    with LinkProcess(target=digest.address, delay_ms=0) as link:
        before = _cpu_ticks(link.pid)
        with _dial(link) as sock:
            for _ in range(num_bytes // len(content)):
                sock.sendall(content)
            sock.shutdown(socket.SHUT_WR)
            _read_all(sock)
        cpu_s = (_cpu_ticks(link.pid) - before) / os.sysconf("SC_CLK_TCK")
    assert cpu_s < num_bytes * 8 / 5e9


def _fill(sock: socket.socket) -> bytes:
    """Send until the socket takes no more, and return what it took."""
    sock.settimeout(0.2)
    pattern = os.urandom(100_000)
    sent = []
    with contextlib.suppress(TimeoutError):
        while True:
            sent.append(pattern[: sock.send(pattern)])
    sock.settimeout(TIMEOUT_S)
    return b"".join(sent)


def test_a_slow_reader_holds_back_its_own_sender_only() -> None:
    """What cannot be delivered stops the reading of that connection; others go on; nothing is lost."""
    go_on = threading.Event()

    def serve(sock: socket.socket) -> None:
        if sock.recv(1) == b"s":
            go_on.wait(TIMEOUT_S)
            _answer_at_the_end(sock)
        else:
            _echo(sock)

    with (
        Service(serve) as target,
        LinkProcess(target=target.address, delay_ms=0) as link,
        _dial(link) as slow,
        _dial(link) as quick,
    ):
        slow.sendall(b"s")
        sent = _fill(slow)
        quick.sendall(b"q")
        assert _round_trip_s(quick, b"x" * 1000) < 1.0
        go_on.set()
        slow.shutdown(socket.SHUT_WR)
        assert _read_all(slow) == hashlib.sha256(sent).digest()


def _reset(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    sock.close()


def _receive(link: LinkProcess) -> bytes:
    """Return what comes over a new connection; it may be reset as early as while it is made."""
    with _dial(link) as sock:
        return sock.recv(1)


def test_a_reset_of_the_target_reaches_the_client() -> None:
    """A target that goes away is seen as such, a delay later, not as a silent connection."""
    with (
        Service(_reset) as target,
        LinkProcess(target=target.address, delay_ms=1) as link,
        pytest.raises(ConnectionResetError),
    ):
        _receive(link)


def test_a_reset_of_the_client_reaches_the_target() -> None:
    """A client that goes away is seen as such, even while its bytes wait for a target that does not read."""
    seen = threading.Event()
    has_reset = threading.Event()

    def serve(sock: socket.socket) -> None:
        has_reset.wait(TIMEOUT_S)
        try:
            while sock.recv(1 << 16):
                pass
        except ConnectionResetError:
            seen.set()

    with Service(serve) as target, LinkProcess(target=target.address, delay_ms=1) as link:
        sock = _dial(link)
        _fill(sock)
        _reset(sock)
        has_reset.set()
        assert seen.wait(TIMEOUT_S)


def test_a_target_that_nobody_serves_resets_the_client() -> None:
    """A connection that cannot be made ends at once; the link goes on and reaches the target when it is there."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = "{}:{}".format(*free.getsockname())
    with LinkProcess(target=address, delay_ms=0) as link:
        with pytest.raises(ConnectionResetError):
            _receive(link)
        assert link.read_stats().num_open == 0


def test_an_idle_link_sleeps(echo: Service) -> None:
    """An open connection without traffic takes no CPU time."""
    with LinkProcess(target=echo.address, delay_ms=5) as link, _dial(link) as sock:
        _round_trip_s(sock, b"x")
        before = _cpu_ticks(link.pid)
        threading.Event().wait(0.5)
        assert _cpu_ticks(link.pid) - before <= 1


def test_a_killed_link_breaks_its_connections(echo: Service) -> None:
    """Whoever kills the emulator sees what a cut line looks like once it is noticed: the connection ends."""
    with LinkProcess(target=echo.address, delay_ms=0) as link, _dial(link) as sock:
        _round_trip_s(sock, b"x")
        os.kill(link.pid, signal.SIGKILL)
        with contextlib.suppress(ConnectionResetError):
            assert sock.recv(1) == b""


def test_who_asks_for_stats_again_and_again_is_answered_each_time() -> None:
    """An answer that leads to the next question does not nest, and the link goes on between two of them."""
    told: list[LinkStats] = []

    def on_stats(stats: LinkStats) -> None:
        told.append(stats)
        if len(told) == 3000:
            link.stop()
        link.ask_stats()

    profile = LinkProfile.of_delay(0, gbit_per_s=10)
    link = Link(listen_at("127.0.0.1", 0), target=Target(("127.0.0.1", 1)), profile=profile, on_stats=on_stats)
    link.ask_stats()
    link.run()
    assert len(told) == 3000
