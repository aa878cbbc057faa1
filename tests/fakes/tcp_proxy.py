"""A TCP proxy on loopback that a test can hold or cut: a link whose misfortunes are commanded, not timed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

_READ_BYTES = 256 * 1024


class TcpProxy:
    """Forwards connections to a port; `num_connections` counts them."""

    def __init__(self, port: int) -> None:
        self.num_connections = 0
        self._port = port
        self._connections: list[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = []
        self._pumps: set[asyncio.Task[None]] = set()
        self._upward = _Gate()
        self._downward = _Gate()

    def hold_downward(self) -> None:
        """Let no byte from the server reach the client until `let_through`; nothing is lost."""
        self._downward.shut()

    def hold_upward(self) -> None:
        """Let no byte from the client reach the server until `let_through`; nothing is lost."""
        self._upward.shut()

    def let_through(self) -> None:
        """Forward again, what was held first."""
        self._upward.open()
        self._downward.open()

    def cut(self) -> None:
        """Reset every connection, as the death of a peer does."""
        for connection in range(len(self._connections)):
            self.cut_one(connection)

    def cut_one(self, connection: int) -> None:
        """Reset one connection; they count from 0 in the order in which they came, from -1 back from the last."""
        for writer in self._connections[connection]:
            writer.transport.abort()

    def cut_server(self) -> None:
        """Reset the server's half of every connection; while `hold_downward` holds, no client hears of it."""
        for _, server_writer in self._connections:
            server_writer.transport.abort()

    async def serve_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection both ways."""
        self.num_connections += 1
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._connections.append((writer, server_writer))
        for source, sink, gate in (
            (reader, server_writer, self._upward),
            (server_reader, writer, self._downward),
        ):
            self._pumps.add(asyncio.create_task(_pump(source, sink, gate)))

    async def close(self) -> None:
        """Reset every connection and end."""
        self.cut()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)


class _Gate:
    """Open or shut."""

    def __init__(self) -> None:
        self._is_open = asyncio.Event()
        self._is_open.set()

    def shut(self) -> None:
        self._is_open.clear()

    def open(self) -> None:
        self._is_open.set()

    async def passed(self) -> None:
        await self._is_open.wait()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter, gate: _Gate) -> None:
    with suppress(ConnectionError):
        while chunk := await source.read(_READ_BYTES):
            await gate.passed()
            sink.write(chunk)
            await sink.drain()
    await gate.passed()
    sink.close()


@asynccontextmanager
async def tcp_proxy(port: int) -> AsyncIterator[tuple[TcpProxy, str]]:
    """Serve a proxy to `port` on a free port; yields it and its `host:port`."""
    proxy = TcpProxy(port)
    server = await asyncio.start_server(proxy.serve_client, "127.0.0.1", 0)
    try:
        yield proxy, f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await proxy.close()
