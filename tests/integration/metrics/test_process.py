"""Services as processes: where they tell their metrics, and that they stop in good order with it."""

import asyncio
import re
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from fakes.metered import Scraped

COMMANDS = {
    "scheduler": ["--edge", "127.0.0.1:1", "--cloud", "127.0.0.1:1"],
    "cloud": ["--emulate", "npu"],
}
FREE = "127.0.0.1:0"


@asynccontextmanager
async def service_process(service: str, *flags: str) -> AsyncIterator[Process]:
    command = ["-m", f"edgeweave_{service}", *COMMANDS[service], "--listen", FREE, *flags]
    process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=PIPE, stderr=PIPE)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def metrics_port(process: Process) -> int:
    """Read the log up to the line that says where metrics are."""
    assert process.stderr is not None
    async for line in process.stderr:
        found = re.search(rb"serving_metrics.*port=\D*(\d+)", line)
        if found:
            return int(found[1])
    raise AssertionError("the service ended without telling metrics")


@pytest.mark.parametrize("service", COMMANDS)
async def test_a_service_tells_metrics_until_it_stops(service: str) -> None:
    """It serves them before it has a session, and a scraper that stays connected does not hold it."""
    async with service_process(service, "--metrics-listen", FREE) as process:
        port = await metrics_port(process)
        async with httpx.AsyncClient() as http:
            told = Scraped((await http.get(f"http://127.0.0.1:{port}/metrics")).text)
        assert told.labels_of("edgeweave:build_info")[0]["service"] == service
        _, staying = await asyncio.open_connection("127.0.0.1", port)
        process.send_signal(signal.SIGTERM)
        _, errors = await process.communicate()
        staying.close()
    assert (process.returncode, b"Traceback" in errors) == (0, False)


async def test_a_port_that_is_taken_ends_the_start() -> None:
    """In one line that says what to do, with exit code 2."""
    with socket.create_server(("127.0.0.1", 0)) as used:
        taken = f"127.0.0.1:{used.getsockname()[1]}"
        async with service_process("scheduler", "--metrics-listen", taken) as process:
            _, errors = await process.communicate()
    (line,) = errors.decode().splitlines()
    assert process.returncode == 2
    assert line.startswith(f"edgeweave scheduler: cannot serve metrics on {taken}: Address already in use; ")
    assert line.endswith("choose another with --metrics-listen")
