"""A TCP proxy on loopback that keeps every byte that clients send to a server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

_READ_BYTES = 256 * 1024


class Recorder:
    """Forwards connections to a port. `upward` holds, for each connection, what the client has sent so far."""

    def __init__(self, port: int) -> None:
        self.upward: list[bytearray] = []
        self._port = port
        self._writers: set[asyncio.StreamWriter] = set()

    def begin(self) -> None:
        """Reset every connection and forget what was recorded: what comes now is whole connections."""
        for writer in self._writers:
            writer.transport.abort()
        self.upward.clear()

    async def serve_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection both ways until it ends."""
        recorded = bytearray()
        self.upward.append(recorded)
        try:
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._port)
        except ConnectionRefusedError:
            writer.transport.abort()
            return
        pair = {writer, server_writer}
        self._writers |= pair
        try:
            await asyncio.gather(_pump(reader, server_writer, recorded), _pump(server_reader, writer, bytearray()))
        finally:
            self._writers -= pair
            for each in pair:
                each.transport.abort()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter, recorded: bytearray) -> None:
    with suppress(ConnectionError):
        while content := await source.read(_READ_BYTES):
            recorded += content
            sink.write(content)
            await sink.drain()
    sink.close()


@asynccontextmanager
async def recorder_to(address: str) -> AsyncIterator[tuple[Recorder, str]]:
    """Serve a recorder to `address` on a free port; yields it and its own `host:port`."""
    recorder = Recorder(int(address.rpartition(":")[2]))
    server = await asyncio.start_server(recorder.serve_client, "127.0.0.1", 0)
    try:
        yield recorder, "{}:{}".format(*server.sockets[0].getsockname())
    finally:
        server.close()
        recorder.begin()
        await server.wait_closed()
