"""One TCP connection through the link: two ends, each a socket and what has arrived for it and is not taken yet.

Knows how content is written to a socket that may be slow or gone. Does not know time.
"""

import contextlib
import socket
import struct
from collections import deque
from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgeweave.link.direction import Direction


class Mark(Enum):
    """What crosses the link beside bytes."""

    OPEN = auto()
    """The client connected: dial the target."""
    END = auto()
    """The sender has sent everything; the other direction may go on."""
    RESET = auto()
    """The sender is gone."""


class EndState(Enum):
    """How far a socket is."""

    WAITING = auto()
    """The opening of the connection crosses the link."""
    DIALLING = auto()
    CONNECTED = auto()
    CLOSED = auto()


Content = bytes | Mark


class End:
    """One socket of a connection. What is read here crosses in `direction`, bound for `other`."""

    other: "End"

    def __init__(self, sock: socket.socket, *, direction: "Direction[Parcel]", state: EndState) -> None:
        self.sock = sock
        self.direction = direction
        self.state = state
        self.has_read_all = False
        self.has_written_all = False
        self._arrived: deque[memoryview | Mark] = deque()

    def prepare(self) -> None:
        """Make the socket return at once, and send small writes at once."""
        self.sock.setblocking(False)  # noqa: FBT003 (the library's signature)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @property
    def is_closed(self) -> bool:
        """Whether the socket is closed."""
        return self.state is EndState.CLOSED

    @property
    def wants_read(self) -> bool:
        """Whether bytes may be read: not while the link is full or the other end slow to take those before."""
        is_held = self.direction.is_paused or self.other.wants_write
        return self.state is EndState.CONNECTED and not self.has_read_all and not is_held

    @property
    def wants_write(self) -> bool:
        """Whether the socket is waited for: to connect, or to take what has arrived."""
        return self.state is EndState.DIALLING or bool(self._arrived)

    def dial(self, address: tuple[str, int]) -> None:
        """Begin to connect to `address`; the socket is writable when it is done.

        Raises:
            OSError: it cannot even begin.
        """
        self.state = EndState.DIALLING
        with contextlib.suppress(BlockingIOError):
            self.sock.connect(address)

    def finish_dialling(self) -> None:
        """Take the result of `dial`.

        Raises:
            OSError: nobody answered.
        """
        self.raise_error()
        self.state = EndState.CONNECTED

    def raise_error(self) -> None:
        """Raise what has happened to the socket, if anything."""
        number = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if number:
            raise OSError(number, "the connection is gone")

    def write(self, content: Content) -> None:
        """Hand `content` to the socket, behind what it has not taken yet.

        Raises:
            OSError: the peer is gone.
        """
        self._arrived.append(content if isinstance(content, Mark) else memoryview(content))
        if self.state is EndState.CONNECTED:
            self.flush()

    def flush(self) -> None:
        """Write what has arrived, as far as the socket takes it.

        Raises:
            OSError: the peer is gone.
        """
        while self._arrived:
            first = self._arrived[0]
            if isinstance(first, Mark):
                self.sock.shutdown(socket.SHUT_WR)
                self.has_written_all = True
            elif (num_bytes := self._send(first)) < len(first):
                self._arrived[0] = first[num_bytes:]
                return
            self._arrived.popleft()

    def _send(self, view: memoryview) -> int:
        try:
            return self.sock.send(view)
        except BlockingIOError:
            return 0

    def close(self) -> None:
        """Close: in good order if all was written, else so that the peer sees a reset."""
        self.state = EndState.CLOSED
        self._arrived.clear()
        if not self.has_written_all:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


Parcel = tuple[End, Content]
"""Content, with the end that it travels to."""
