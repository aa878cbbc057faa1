"""`python -m edgeweave.link`: the link emulator as a process.

Says where it listens, and at its end or on SIGUSR1 what it has carried, each as a line of JSON on standard output.
SIGTERM and SIGINT end it in good order.
"""

import argparse
import json
import signal
import socket
import sys
from collections.abc import Sequence

from edgeweave.errors import InvalidSettingsError
from edgeweave.link.link import Link
from edgeweave.link.profile import LinkProfile
from edgeweave.settings.flag_parser import FlagParser
from edgeweave.settings.values import host_and_port

_BACKLOG = 512
_USER_ERROR = 2


def main(argv: Sequence[str]) -> None:
    """Run the link that `argv` describes until a signal.

    Raises:
        InvalidSettingsError: a number or an address is wrong, or the port is taken.
    """
    options = _parser().parse_args(argv)
    profile = _profile(options)
    family, target = _resolved(options.target)
    listener = _listener(options.listen)
    link = Link(listener, target=target, target_family=family, profile=profile)
    signal.signal(signal.SIGUSR1, lambda *_: _say(link.stats.line()))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: link.stop())
    _say(json.dumps({"listening": f"{options.listen.rpartition(':')[0]}:{listener.getsockname()[1]}"}))
    link.run()
    _say(link.stats.line())


def _parser() -> FlagParser:
    parser = FlagParser(prog="edgeweave link", description="TCP proxy with delay and rate of a wide-area link.")
    parser.add_argument("--listen", metavar="HOST:PORT", required=True, help="where clients connect; port 0: any")
    parser.add_argument("--target", metavar="HOST:PORT", required=True, help="where their connections lead")
    length = parser.add_mutually_exclusive_group(required=True)
    length.add_argument("--distance-km", metavar="KM", type=float, help="length of the fibre; 4.9 us one way per km")
    length.add_argument("--delay-ms", metavar="MS", type=float, help="one-way delay, instead of a distance")
    parser.add_argument("--bandwidth-gbit", metavar="GBIT", type=float, default=10.0, help="Gbit/s each way [10]")
    return parser


def _profile(options: argparse.Namespace) -> LinkProfile:
    try:
        if options.delay_ms is not None:
            return LinkProfile.of_delay(options.delay_ms, gbit_per_s=options.bandwidth_gbit)
        return LinkProfile.of_distance(options.distance_km, gbit_per_s=options.bandwidth_gbit)
    except (ValueError, OverflowError) as error:
        raise InvalidSettingsError(f"link: {error}") from error


def _resolved(address: str) -> tuple[socket.AddressFamily, tuple[str, int]]:
    host, port = _parts("--target", address)
    try:
        family, _, _, _, found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise InvalidSettingsError(f"link: --target {address}: {error.strerror}; give a host that resolves") from error
    return family, (str(found[0]), int(found[1]))


def _listener(address: str) -> socket.socket:
    host, port = _parts("--listen", address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise InvalidSettingsError(f"link: --listen {address}: {error.strerror}; choose another port") from error


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
