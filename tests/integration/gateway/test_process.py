"""The gateway as a process: what it says when it cannot start, and how it stops."""

import asyncio
import re
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from fakes.scheduler import FakeScheduler, serve


@asynccontextmanager
async def gateway_process(*flags: str) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "edgeweave_gateway", *flags, stdout=PIPE, stderr=PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def failure_of(*flags: str) -> tuple[int | None, list[str]]:
    async with gateway_process(*flags) as process:
        _, errors = await process.communicate()
        return process.returncode, errors.decode().splitlines()


async def url_of(process: Process) -> str:
    """Read the log up to the line that says where HTTP is served."""
    assert process.stderr is not None
    async for line in process.stderr:
        found = re.search(rb"http://[\d.:]+", line)
        if found and b"serving" in line:
            return found[0].decode()
    raise AssertionError("the gateway ended without serving")


async def test_start_that_fails(model_folder: Path) -> None:
    """A port in use, a missing model and a wrong flag are one line each that says what to do, with exit code 2."""
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        in_use, no_model, no_setting = await asyncio.gather(
            failure_of("--model", str(model_folder), "--port", str(port)),
            failure_of("--model", str(model_folder / "nowhere"), "--port", "0"),
            failure_of("--model", str(model_folder), "--prot", "0"),
        )
    assert in_use[0] == no_model[0] == no_setting[0] == 2
    assert len(in_use[1]) == len(no_model[1]) == len(no_setting[1]) == 1
    assert f"cannot serve HTTP on 127.0.0.1:{port}: Address already in use" in in_use[1][0]
    assert "choose another with --port" in in_use[1][0]
    assert "nowhere does not exist" in no_model[1][0]
    assert "--prot" in no_setting[1][0]


async def test_stop(model_folder: Path) -> None:
    """After SIGTERM an open stream goes on to its end, then the process ends with exit code 0."""
    fake = FakeScheduler(script=lambda _: (70, 71, 72), hold_at=1)
    body = {"model": "m", "prompt": "a", "stream": True, "max_tokens": 3}
    async with serve(fake):
        flags = ["--model", str(model_folder), "--model-name", "m", "--port", "0", "--scheduler", fake.target]
        async with gateway_process(*flags) as process, httpx.AsyncClient(timeout=20) as http:
            url = await url_of(process)
            async with http.stream("POST", f"{url}/v1/completions", json=body) as response:
                await fake.holding.wait()
                process.send_signal(signal.SIGTERM)
                await line_with(process, b"stopping")
                fake.release.set()
                text = (await response.aread()).decode()
            _, errors = await process.communicate()
    assert text.endswith("data: [DONE]\n\n")
    assert (process.returncode, b"Traceback" in errors) == (0, False)


async def test_second_signal(model_folder: Path) -> None:
    """A second signal ends an open stream with an event that says so; the request is aborted."""
    fake = FakeScheduler(script=lambda _: (70, 71, 72), hold_at=1)
    body = {"model": "m", "prompt": "a", "stream": True, "max_tokens": 3}
    async with serve(fake):
        flags = ["--model", str(model_folder), "--model-name", "m", "--port", "0", "--scheduler", fake.target]
        async with gateway_process(*flags) as process, httpx.AsyncClient(timeout=20) as http:
            url = await url_of(process)
            async with http.stream("POST", f"{url}/v1/completions", json=body) as response:
                await fake.holding.wait()
                process.send_signal(signal.SIGINT)
                await line_with(process, b"stopping")
                process.send_signal(signal.SIGINT)
                text = (await response.aread()).decode()
            _, errors = await process.communicate()
            await fake.aborted.wait()
    assert "the gateway is stopping" in text
    assert text.split("\n\n")[-2].startswith("event: error\n")
    assert (process.returncode, b"Traceback" in errors) == (0, False)


async def line_with(process: Process, words: bytes) -> None:
    assert process.stderr is not None
    async for line in process.stderr:
        if words in line:
            return
    raise AssertionError(f"the gateway ended without saying {words!r}")
