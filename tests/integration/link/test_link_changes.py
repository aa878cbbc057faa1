"""A link that is changed while it runs: by its control port, and by a script."""

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from edgeweave.errors import InvalidSettingsError, UnavailableError
from edgeweave.link import LinkControl, LinkProcess

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
MESSAGE = b"x" * 100


@asynccontextmanager
async def echo_server() -> AsyncIterator[str]:
    """Serve an echo on a free port, and give its address."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while read := await reader.read(1 << 16):
                writer.write(read)
        except ConnectionError:
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def connected(address: str) -> Streams:
    host, _, port = address.rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def round_trip_ms(streams: Streams) -> float:
    reader, writer = streams
    begin_s = time.perf_counter()
    writer.write(MESSAGE)
    await reader.readexactly(len(MESSAGE))
    return (time.perf_counter() - begin_s) * 1000


async def test_a_change_is_in_force_when_it_is_answered() -> None:
    """The next message takes the new time, on a connection that was there before; so does one on a new connection."""
    async with echo_server() as target:
        with LinkProcess(target=target, delay_ms=1) as link:
            async with link.control() as control:
                streams = await connected(link.address)
                await control.set(delay_ms=40)
                assert await round_trip_ms(streams) >= 80
                await control.set(distance_km=100, jitter_ms=0.1)
                assert min([await round_trip_ms(streams) for _ in range(5)]) < 40
                streams[1].close()


async def test_a_stall_holds_everything_for_its_time() -> None:
    async with echo_server() as target:
        with LinkProcess(target=target, delay_ms=1) as link:
            async with link.control() as control:
                streams = await connected(link.address)
                await round_trip_ms(streams)
                await control.stall(100)
                assert await round_trip_ms(streams) >= 90
                streams[1].close()


async def test_a_cut_resets_and_refuses_until_it_is_restored() -> None:
    """Connections break at once, new ones are refused, and afterwards the same port serves again."""
    async with echo_server() as target:
        with LinkProcess(target=target, delay_ms=1) as link:
            async with link.control() as control:
                streams = await connected(link.address)
                await round_trip_ms(streams)
                for _ in range(2):  # a second cut changes nothing
                    await control.cut()
                with pytest.raises(ConnectionResetError):
                    await streams[0].read(1)
                with pytest.raises(ConnectionRefusedError):
                    await connected(link.address)
                assert link.read_stats().num_open == 0
                for _ in range(2):
                    await control.restore()
                streams = await connected(link.address)
                assert await round_trip_ms(streams) >= 2
                streams[1].close()


async def test_what_a_link_cannot_do_is_refused_in_words_and_changes_nothing() -> None:
    async with echo_server() as target:
        with LinkProcess(target=target, delay_ms=1) as link:
            async with link.control() as control:
                with pytest.raises(InvalidSettingsError, match="has no 'length'; give distance_km"):
                    await control.set(length=3)
                with pytest.raises(InvalidSettingsError, match="give a rate above 0"):
                    await control.set(delay_ms=500, bandwidth_gbit=0)
                streams = await connected(link.address)
                assert await round_trip_ms(streams) < 500
                streams[1].close()


async def test_lines_are_answered_one_by_one_and_garbage_as_well() -> None:
    """A shell can speak to the port: one line in, one line out."""
    with LinkProcess(target="127.0.0.1:1", delay_ms=1) as link:
        reader, writer = await connected(link.control_address)
        writer.write(b'{"stall": {"ms": 1}}\nnonsense\n"restore"\n')
        answers = [json.loads(await reader.readline()) for _ in range(3)]
        assert answers[0] == answers[2] == {"ok": True}
        assert "error" in answers[1]
        writer.close()


async def test_a_line_without_end_ends_its_connection_only() -> None:
    with LinkProcess(target="127.0.0.1:1", delay_ms=1) as link:
        reader, writer = await connected(link.control_address)
        writer.write(b"x" * 200_000)
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        async with link.control() as control:
            await control.restore()


async def test_a_link_that_is_gone_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = "{}:{}".format(*free.getsockname())
    with pytest.raises(UnavailableError, match=f"no link answers at {address}"):
        async with LinkControl(address):
            pytest.fail("connected")
    with LinkProcess(target=address, delay_ms=0) as link:
        control = await link.control().__aenter__()
    with pytest.raises(UnavailableError, match="is gone"):
        await control.cut()
    await control.__aexit__(None, None, None)


async def test_a_script_changes_the_link_at_its_times(tmp_path: Path) -> None:
    """The cut comes half a second after the start, and its end soon after."""
    script = tmp_path / "script.yaml"
    script.write_text("- {at_s: 0, set: {delay_ms: 10}}\n- {at_s: 0.5, cut: }\n- {at_s: 0.6, restore: }\n")
    async with echo_server() as target:
        with LinkProcess(target=target, delay_ms=1, flags={"--script": script}) as link:
            streams = await connected(link.address)
            assert await round_trip_ms(streams) >= 20
            with pytest.raises(ConnectionResetError):
                await streams[0].read(1)
            async with asyncio.timeout(10):
                while True:
                    try:
                        streams = await connected(link.address)
                        break
                    except ConnectionRefusedError:
                        await asyncio.sleep(0.01)
            assert await round_trip_ms(streams) >= 20
            streams[1].close()


async def test_an_unsteady_link_loses_and_reorders_nothing() -> None:
    """Jitter and stalls concern time only."""
    content = bytes(range(256)) * 2000
    flags = {"--jitter-ms": 2, "--stalls-per-s": 20, "--stall-ms": 5, "--seed": 3}
    async with echo_server() as target:
        with LinkProcess(target=target, delay_ms=1, flags=flags) as link:
            reader, writer = await connected(link.address)
            writer.write(content)
            assert await reader.readexactly(len(content)) == content
            writer.close()
