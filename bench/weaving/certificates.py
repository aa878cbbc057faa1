"""Keys and certificates for one run of the bench: an authority, and one certificate for all parts.

Made by the program openssl in a folder that goes away with the run. Nothing outside the run trusts them.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from edgeweave.errors import InvalidSettingsError
from edgeweave.settings import TlsSettings

_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
_NAMES = "subjectAltName=IP:127.0.0.1,DNS:localhost"


@contextmanager
def certificates() -> Iterator[TlsSettings]:
    """Make keys and certificates, and take them away at the end.

    Raises:
        InvalidSettingsError: there is no openssl, or it failed.
    """
    with TemporaryDirectory(prefix="edgeweave-bench-") as name:
        folder = Path(name)
        authority, part = folder / "authority", folder / "part"
        _openssl("req", "-x509", *_NEW_KEY, "-subj", "/CN=bench authority", *_outputs(authority))
        signed_by = ("-CA", f"{authority}.pem", "-CAkey", f"{authority}.key")
        _openssl("req", "-x509", *_NEW_KEY, "-subj", "/CN=bench", "-addext", _NAMES, *signed_by, *_outputs(part))
        yield TlsSettings(ca_file=Path(f"{authority}.pem"), cert_file=Path(f"{part}.pem"), key_file=Path(f"{part}.key"))


def tls_words(tls: TlsSettings) -> list[str]:
    """Return the flags by which every service is told of `tls`."""
    return [
        "--tls-ca-file",
        str(tls.ca_file),
        "--tls-cert-file",
        str(tls.cert_file),
        "--tls-key-file",
        str(tls.key_file),
    ]


def _outputs(path: Path) -> tuple[str, ...]:
    return ("-keyout", f"{path}.key", "-out", f"{path}.pem")


def _openssl(*words: str) -> None:
    try:
        subprocess.run(["openssl", *words], check=True, capture_output=True, text=True)  # noqa: S603, S607 - a tool by name
    except FileNotFoundError:
        raise InvalidSettingsError(
            "the row with TLS needs the program openssl; install it, or leave out --tls"
        ) from None
    except subprocess.CalledProcessError as error:
        last_line = (error.stderr.strip().splitlines() or ["no word of why"])[-1]
        raise InvalidSettingsError(f"openssl failed: {last_line}") from None
