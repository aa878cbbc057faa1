"""Waiting for sockets with a precise end.

`epoll_wait` counts in milliseconds, a tenth of the round trip at 1,000 km. `select` counts in microseconds, but in
1,024 descriptors at most. An epoll descriptor is itself one that `select` can watch, so the two together do.
"""

import ctypes
import select
import socket
from collections.abc import Sequence

_PR_SET_TIMERSLACK = 29


def set_timer_slack(slack_ns: int) -> None:
    """Let the kernel end waits of this thread at most `slack_ns` late; its default is 50,000."""
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(slack_ns))


class Poller:
    """The sockets that are waited for, each with the events that matter now."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._masks: dict[int, int] = {}

    def watch(self, sock: socket.socket, mask: int) -> None:
        """Wait for the events in `mask` from now on; errors are always waited for."""
        descriptor = sock.fileno()
        known = self._masks.get(descriptor)
        if known is None:
            self._epoll.register(descriptor, mask)
        elif known != mask:
            self._epoll.modify(descriptor, mask)
        self._masks[descriptor] = mask

    def forget(self, sock: socket.socket) -> None:
        """Wait for nothing of this socket, not even errors."""
        if self._masks.pop(sock.fileno(), None) is not None:
            self._epoll.unregister(sock)

    def wait(self, timeout_ns: int | None) -> Sequence[tuple[int, int]]:
        """Return descriptors and what happened at them; nothing after `timeout_ns`, never nothing without one."""
        if timeout_ns is None:
            return self._epoll.poll()
        if timeout_ns > 0:
            select.select([self._epoll], [], [], timeout_ns / 1e9)
        return self._epoll.poll(0)

    def close(self) -> None:
        """Forget everything."""
        self._epoll.close()
