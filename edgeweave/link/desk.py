"""The control port of a link: one line of JSON in, one out, when what it asks for is in force.

    {"set": {"distance_km": 3000}}     {"ok": true}
    "cut"                              {"ok": true}
    {"set": {"length": 3}}             {"error": "set: a link has no 'length'; give ..."}

Knows lines and sockets. Does not wait: the loop of the link says when a socket can be read.
"""

import errno
import json
import select
import socket
from collections.abc import Callable

from edgeweave.link.changes import Change, change_of
from edgeweave.link.poller import Poller

_LONGEST_LINE_BYTES = 1 << 16
_READ_BYTES = 4096


class Desk:
    """Takes the connections of one port, and gives each line that it reads to `apply`."""

    def __init__(self, listener: socket.socket, *, poller: Poller, apply: Callable[[Change], None]) -> None:
        self._listener = listener
        self._poller = poller
        self._apply = apply
        self._visitors: dict[int, tuple[socket.socket, bytearray]] = {}

    def open(self) -> None:
        """Begin to take connections."""
        self._listener.setblocking(False)  # noqa: FBT003 (the library's signature)
        self._poller.watch(self._listener, select.EPOLLIN)

    def react(self, descriptor: int) -> None:
        """Do what a socket is ready for, if it is one of the desk's."""
        if descriptor == self._listener.fileno():
            self._accept()
        elif descriptor in self._visitors:
            self._read(*self._visitors[descriptor])

    def close(self) -> None:
        """Close everything."""
        for sock, _ in self._visitors.values():
            sock.close()
        self._listener.close()

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError as error:
            if error.errno in {errno.EMFILE, errno.ENFILE}:  # others wait until a visitor leaves
                self._poller.forget(self._listener)
            return
        sock.setblocking(False)  # noqa: FBT003 (the library's signature)
        self._visitors[sock.fileno()] = (sock, bytearray())
        self._poller.watch(sock, select.EPOLLIN)

    def _read(self, sock: socket.socket, pending: bytearray) -> None:
        try:
            read = sock.recv(_READ_BYTES)
            pending += read
            while (end := pending.find(b"\n")) >= 0:
                line = bytes(pending[:end])
                del pending[: end + 1]
                sock.send(f"{json.dumps(self._answer(line))}\n".encode())
        except BlockingIOError:
            return
        except OSError:
            read = b""
        if not read or len(pending) > _LONGEST_LINE_BYTES:
            self._poller.forget(sock)
            del self._visitors[sock.fileno()]
            sock.close()
            self._poller.watch(self._listener, select.EPOLLIN)

    def _answer(self, line: bytes) -> dict[str, object]:
        try:
            self._apply(change_of(json.loads(line)))
        except (ValueError, OSError) as error:
            return {"error": str(error)}
        return {"ok": True}
