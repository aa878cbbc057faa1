"""The link emulator: a TCP proxy whose bytes take the time of a wide-area link, which may change while it runs.

All connections share one queue a direction, as they would share a fibre. The emulator ends TCP on both sides, so what
the kernel does on a real path (slow start, windows) is not seen through it; nor are loss and packet headers.
"""

import contextlib
import errno
import select
import socket
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from edgeweave.link.changes import Change, Cut, Restore, Set, Stall
from edgeweave.link.connection import Content, End, EndState, Mark, Parcel
from edgeweave.link.desk import Desk
from edgeweave.link.direction import Direction
from edgeweave.link.poller import Poller, set_timer_slack
from edgeweave.link.profile import LinkProfile
from edgeweave.link.script import Script
from edgeweave.link.stats import LinkStats

_TIMER_SLACK_NS = 1
_WAKES_BYTES = 4096
_BACKLOG = 512

ArgumentT = TypeVar("ArgumentT")


class Target(NamedTuple):
    """Where the connections of a link lead."""

    address: tuple[str, int]
    family: socket.AddressFamily = socket.AF_INET


def listen_at(host: str, port: int) -> socket.socket:
    """Return a socket that clients of a link, or of its control port, can connect to; OSError if that cannot be."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=_BACKLOG)


class Link:
    """Carries every connection that `listener` accepts to `target`. `run` is the whole life; then all is closed.

    It changes as `script` says, counted from the begin of `run`, and as whoever connects to `control` asks. `seed`
    decides what is random about it. `on_stats` gets what was carried, each time that somebody asks by `ask_stats`.
    """

    def __init__(
        self,
        listener: socket.socket,
        *,
        target: Target,
        profile: LinkProfile,
        seed: int = 0,
        script: Script | None = None,
        control: socket.socket | None = None,
        on_stats: Callable[[LinkStats], None] = lambda _stats: None,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._listener = listener
        self._target = target
        self._profile = profile
        self._now_ns = now_ns
        self._script = script or Script()
        self._began_ns = 0
        self._to_target: Direction[Parcel] = Direction(profile, seed=f"{seed} to target")
        self._to_client: Direction[Parcel] = Direction(profile, seed=f"{seed} to client")
        self._ends: dict[int, End] = {}
        self._num_connections = 0
        self._poller = Poller()
        self._desk = None if control is None else Desk(control, poller=self._poller, apply=self.apply)
        self._address = listener.getsockname()[:2]
        self._is_cut = False
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._is_stopping = False
        self._on_stats = on_stats
        self._num_asked = 0
        self._num_told = 0

    def ask_stats(self) -> None:
        """Let `run` tell what was carried so far. May be called from a signal handler, again and again."""
        self._num_asked += 1
        self._wake_writer.send(b"\0")

    def stop(self) -> None:
        """Let `run` return. May be called from a signal handler or another thread."""
        self._is_stopping = True
        self._wake_writer.send(b"\0")

    @property
    def stats(self) -> LinkStats:
        """What was carried so far."""
        return LinkStats(
            num_connections=self._num_connections,
            num_open=sum(end.direction is self._to_target for end in self._ends.values()),
            to_target_bytes=self._to_target.num_bytes,
            to_client_bytes=self._to_client.num_bytes,
        )

    def run(self) -> None:
        """Carry connections until `stop`.

        Raises:
            ValueError: a change of the script fits no more to what the link was set to meanwhile.
        """
        set_timer_slack(_TIMER_SLACK_NS)
        self._began_ns = self._now_ns()
        self._listener.setblocking(False)  # noqa: FBT003 (the library's signature)
        self._watch_listener()
        self._poller.watch(self._wake_reader, select.EPOLLIN)
        if self._desk is not None:
            self._desk.open()
        try:
            while not self._is_stopping:
                for descriptor, mask in self._poller.wait(self._timeout_ns()):
                    self._react(descriptor, mask)
                self._tell_stats()
                self._play()
                for direction in self._directions:
                    self._deliver(direction)
        finally:
            self._close()

    def apply(self, change: Change) -> None:
        """Change the link, now.

        Raises:
            ValueError: that would be no link; nothing has changed.
            OSError: the port was taken by somebody else while the link was cut.
        """
        match change:
            case Set():
                self._set(change.applied(self._profile))
            case Stall(duration_ns):
                for direction in self._directions:
                    direction.stall(duration_ns, now_ns=self._now_ns())
            case Cut() if not self._is_cut:
                self._cut()
            case Restore() if self._is_cut:
                self._restore()

    def _tell_stats(self) -> None:
        """Answer in the loop, where nothing is half done; who asks meanwhile is answered in the next round."""
        asked = self._num_asked
        while self._num_told < asked:
            self._num_told += 1
            self._on_stats(self.stats)

    @property
    def _directions(self) -> tuple[Direction[Parcel], Direction[Parcel]]:
        return self._to_target, self._to_client

    def _set(self, profile: LinkProfile) -> None:
        self._profile = profile
        for direction in self._directions:
            direction.change(profile, now_ns=self._now_ns())

    def _cut(self) -> None:
        self._is_cut = True
        self._poller.forget(self._listener)
        self._listener.close()
        for end in list(self._ends.values()):
            self._drop(end)
        for direction in self._directions:
            direction.clear()

    def _restore(self) -> None:
        self._listener = listen_at(*self._address)
        self._listener.setblocking(False)  # noqa: FBT003 (the library's signature)
        self._is_cut = False
        self._watch_listener()

    def _play(self) -> None:
        while (change := self._script.take(self._now_ns() - self._began_ns)) is not None:
            self.apply(change)

    def _timeout_ns(self) -> int | None:
        times = [direction.next_event_ns for direction in self._directions]
        if self._script.next_ns is not None:
            times.append(self._began_ns + self._script.next_ns)
        next_ns = min((time_ns for time_ns in times if time_ns is not None), default=None)
        return None if next_ns is None else max(0, next_ns - self._now_ns())

    def _react(self, descriptor: int, mask: int) -> None:
        end = self._ends.get(descriptor)
        if end is not None:
            self._attempt(self._move, end, mask)
        elif descriptor == self._listener.fileno():
            self._accept()
        elif descriptor == self._wake_reader.fileno():
            self._wake_reader.recv(_WAKES_BYTES)
        elif self._desk is not None:
            self._desk.react(descriptor)

    def _accept(self) -> None:
        pair = self._accept_pair()
        if pair is None:
            return
        near = End(pair[0], direction=self._to_target, state=EndState.CONNECTED)
        far = End(pair[1], direction=self._to_client, state=EndState.WAITING)
        near.other, far.other = far, near
        self._num_connections += 1
        for end in (near, far):
            end.prepare()
            self._ends[end.sock.fileno()] = end
        near.direction.enter((far, Mark.OPEN), num_bytes=0, now_ns=self._now_ns())
        self._watch(near)

    def _accept_pair(self) -> tuple[socket.socket, socket.socket] | None:
        """Return a new client and a socket to dial the target with; None if there is no client or no descriptor."""
        with contextlib.ExitStack() as undo:
            try:
                far = undo.enter_context(socket.socket(self._target.family))
                near, _ = self._listener.accept()
            except OSError as error:
                if error.errno in {errno.EMFILE, errno.ENFILE}:  # clients wait until a connection ends
                    self._poller.forget(self._listener)
                return None
            undo.pop_all()
            return near, far

    def _attempt(self, act: Callable[[End, ArgumentT], None], end: End, argument: ArgumentT) -> None:
        """Do something with the socket of `end`; if its peer is gone, let the other peer know."""
        try:
            act(end, argument)
        except OSError:
            end.direction.enter((end.other, Mark.RESET), num_bytes=0, now_ns=self._now_ns())
            self._drop(end)
        self._watch(end)
        self._watch(end.other)

    def _move(self, end: End, mask: int) -> None:
        """Do what the socket of `end` is ready for."""
        if mask & select.EPOLLERR:
            end.raise_error()
        if end.state is EndState.DIALLING:
            end.finish_dialling()
        end.flush()
        if mask & ~select.EPOLLOUT and end.wants_read:
            self._read(end)
        elif mask & select.EPOLLHUP:
            self._poller.forget(end.sock)  # or it is reported until what it still holds can be read

    def _read(self, end: End) -> None:
        try:
            read = end.sock.recv(self._profile.piece_bytes)
        except BlockingIOError:
            return
        end.has_read_all = not read
        end.direction.enter((end.other, read or Mark.END), num_bytes=len(read), now_ns=self._now_ns())
        if end.direction.is_paused:
            self._watch_all(end.direction)

    def _deliver(self, direction: Direction[Parcel]) -> None:
        """Hand over what is due, and read again if the buffer has room again."""
        now_ns = self._now_ns()
        while (parcel := direction.leave(now_ns)) is not None:
            end, content = parcel
            if not end.is_closed:
                self._attempt(self._arrive, end, content)
        if direction.resume(now_ns):
            self._watch_all(direction)

    def _arrive(self, end: End, content: Content) -> None:
        if content is Mark.OPEN:
            end.dial(self._target.address)
        elif content is Mark.RESET:
            self._drop(end)
        else:
            end.write(content)

    def _watch_all(self, direction: Direction[Parcel]) -> None:
        for end in [end for end in self._ends.values() if end.direction is direction]:
            self._watch(end)

    def _watch(self, end: End) -> None:
        """Wait for what `end` can do next; close it when that is nothing any more."""
        if end.has_read_all and end.has_written_all and not end.is_closed:
            self._drop(end)
        elif end.state in {EndState.DIALLING, EndState.CONNECTED}:
            reading = select.EPOLLIN if end.wants_read else 0
            self._poller.watch(end.sock, reading | (select.EPOLLOUT if end.wants_write else 0))

    def _drop(self, end: End) -> None:
        """Close `end`: in good order if all was written, else so that its peer sees a reset."""
        self._poller.forget(end.sock)
        del self._ends[end.sock.fileno()]
        end.close()
        self._watch_listener()

    def _watch_listener(self) -> None:
        if not self._is_cut:
            self._poller.watch(self._listener, select.EPOLLIN)

    def _close(self) -> None:
        for end in list(self._ends.values()):
            self._drop(end)
        if self._desk is not None:
            self._desk.close()
        self._poller.close()
        for sock in (self._listener, self._wake_reader, self._wake_writer):
            sock.close()
