"""`python -m edgeweave.link`: the link emulator as a process.

Says where it listens, for clients and for control, and at its end or on SIGUSR1 what it has carried, each as a line of
JSON on standard output.
SIGTERM and SIGINT end it in good order.
"""

import argparse
import json
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from edgeweave.errors import InvalidSettingsError
from edgeweave.link.link import Link, Target, listen_at
from edgeweave.link.profile import LinkProfile
from edgeweave.link.script import Script, read_script
from edgeweave.settings.flag_parser import FlagParser
from edgeweave.settings.values import host_and_port

_USER_ERROR = 2


def main(argv: Sequence[str]) -> None:
    """Run the link that `argv` describes until a signal.

    Raises:
        InvalidSettingsError: a number, an address or the script is wrong, or a port is taken.
    """
    options = _parser().parse_args(argv)
    profile = _profile(options)
    script = Script() if options.script is None else read_script(options.script, profile)
    target = _resolved(options.target)
    listener = _listener("--listen", options.listen)
    control = None if options.control is None else _listener("--control", options.control)
    link = Link(
        listener,
        target=target,
        profile=profile,
        seed=options.seed,
        script=script,
        control=control,
        on_stats=lambda stats: _say(stats.line()),
    )
    signal.signal(signal.SIGUSR1, lambda *_: link.ask_stats())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: link.stop())
    told = {"listening": _told(options.listen, listener)}
    _say(json.dumps(told if control is None else told | {"control": _told(options.control, control)}))
    try:
        link.run()
    except ValueError as error:
        raise InvalidSettingsError(f"link: --script {options.script}: {error}") from error
    _say(link.stats.line())


def _told(address: str, listener: socket.socket) -> str:
    """Return where somebody listens who was to listen at `address`."""
    return f"{address.rpartition(':')[0]}:{listener.getsockname()[1]}"


def _parser() -> FlagParser:
    parser = FlagParser(prog="edgeweave link", description="TCP proxy with delay and rate of a wide-area link.")
    parser.add_argument("--listen", metavar="HOST:PORT", required=True, help="where clients connect; port 0: any")
    parser.add_argument("--target", metavar="HOST:PORT", required=True, help="where their connections lead")
    length = parser.add_mutually_exclusive_group(required=True)
    length.add_argument("--distance-km", metavar="KM", type=float, help="length of the fibre; 4.9 us one way per km")
    length.add_argument("--delay-ms", metavar="MS", type=float, help="one-way delay, instead of a distance")
    parser.add_argument("--bandwidth-gbit", metavar="GBIT", type=float, default=10.0, help="Gbit/s each way [10]")
    parser.add_argument("--jitter-ms", metavar="MS", type=float, default=0.0, help="at most so much more delay [0]")
    parser.add_argument("--stalls-per-s", metavar="N", type=float, default=0.0, help="random stalls a second [0]")
    parser.add_argument("--stall-ms", metavar="MS", type=float, default=100.0, help="their mean length [100]")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of jitter and random stalls [0]")
    parser.add_argument("--script", metavar="FILE", type=Path, help="YAML file of timed changes; see docs/link.md")
    parser.add_argument("--control", metavar="HOST:PORT", help="take changes here, a line of JSON each; port 0: any")
    return parser


def _profile(options: argparse.Namespace) -> LinkProfile:
    try:
        gbit_per_s = options.bandwidth_gbit
        steady = (
            LinkProfile.of_distance(options.distance_km, gbit_per_s=gbit_per_s)
            if options.delay_ms is None
            else LinkProfile.of_delay(options.delay_ms, gbit_per_s=gbit_per_s)
        )
        return replace(
            steady,
            jitter_ns=round(options.jitter_ms * 1e6),
            stalls_per_s=options.stalls_per_s,
            stall_ns=round(options.stall_ms * 1e6),
        )
    except (ValueError, OverflowError) as error:
        raise InvalidSettingsError(f"link: {error}") from error


def _resolved(address: str) -> Target:
    host, port = _parts("--target", address)
    try:
        family, _, _, _, found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise InvalidSettingsError(f"link: --target {address}: {error.strerror}; give a host that resolves") from error
    return Target((str(found[0]), int(found[1])), family)


def _listener(flag: str, address: str) -> socket.socket:
    host, port = _parts(flag, address)
    try:
        return listen_at(host, port)
    except OSError as error:
        raise InvalidSettingsError(f"link: {flag} {address}: {error.strerror}; choose another port") from error


def _parts(flag: str, address: str) -> tuple[str, int]:
    try:
        return host_and_port(address)
    except ValueError as error:
        raise InvalidSettingsError(f"link: {flag} {address!r}: {error}") from error


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except InvalidSettingsError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(_USER_ERROR)
