"""Mutual TLS from the files that the settings name.

Knows PEM files and credentials. Does not know who may call what.
"""

from pathlib import Path

import grpc

from edgeweave.errors import InvalidSettingsError
from edgeweave.settings.common import TlsSettings


def channel_credentials(tls: TlsSettings) -> grpc.ChannelCredentials:
    """Return what a client shows and expects; InvalidSettingsError if a file cannot be read."""
    return grpc.ssl_channel_credentials(
        root_certificates=_read(tls.ca_file),
        private_key=_read(tls.key_file),
        certificate_chain=_read(tls.cert_file),
    )


def server_credentials(tls: TlsSettings) -> grpc.ServerCredentials:
    """Return what a server shows, and demands of every client; InvalidSettingsError if a file cannot be read."""
    return grpc.ssl_server_credentials(
        [(_read(tls.key_file), _read(tls.cert_file))],
        root_certificates=_read(tls.ca_file),
        require_client_auth=True,
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidSettingsError(f"cannot read the TLS file {path}: {error.strerror}") from None
