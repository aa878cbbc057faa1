"""The link emulator as a command."""

import json
import signal
import socket
import subprocess
import sys

from fakes.process_table import is_alive, until_gone

COMMAND = [sys.executable, "-m", "edgeweave.cli", "link"]


def test_a_link_says_where_it_listens_and_what_it_carried() -> None:
    """One line of JSON at the start, one for each SIGUSR1, one at the end; SIGTERM is no failure; the port is free."""
    with socket.create_server(("127.0.0.1", 0)) as target:
        address = "{}:{}".format(*target.getsockname())
        flags = ["--listen", "127.0.0.1:0", "--target", address, "--distance-km", "10", "--bandwidth-gbit", "1"]
        link = subprocess.Popen(  # noqa: S603 (our own program)
            [*COMMAND, *flags], stdout=subprocess.PIPE, text=True
        )
        assert link.stdout is not None
        host, _, port = json.loads(link.stdout.readline())["listening"].rpartition(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(b"hello")
            server, _ = target.accept()
            with server:
                assert server.recv(5) == b"hello"
            link.send_signal(signal.SIGUSR1)
            assert json.loads(link.stdout.readline())["to_target_bytes"] == 5
        link.terminate()
        output, _ = link.communicate(timeout=10)
    assert link.returncode == 0
    assert json.loads(output)["num_connections"] == 1
    socket.create_server((host, int(port))).close()


def test_a_taken_port_is_one_line() -> None:
    """A port in use ends the command with exit code 2, one line and no trace."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = "{}:{}".format(*taken.getsockname())
        flags = ["--listen", address, "--target", address, "--delay-ms", "1"]
        ended = subprocess.run(  # noqa: S603 (our own program)
            [*COMMAND, *flags], capture_output=True, text=True, check=False
        )
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"link: --listen {address}: Address already in use")
    assert ended.stderr.count("\n") == 1


def test_a_link_ends_with_whoever_started_it() -> None:
    """Nothing is left of a link whose parent was killed."""
    program = (
        "import sys, threading\n"
        "from edgeweave.link import LinkProcess\n"
        "with LinkProcess(target='127.0.0.1:1', delay_ms=1) as link:\n"
        "    print(link.pid, flush=True)\n"
        "    threading.Event().wait()\n"
    )
    parent = subprocess.Popen(  # noqa: S603 (our own program)
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert is_alive(pid)
    parent.kill()
    parent.communicate()
    until_gone([pid])
