"""Mutual TLS from the files that the settings name.

Knows PEM files and credentials. Does not know who may call what.
"""

import ssl

import grpc

from edgeweave.errors import InvalidSettingsError
from edgeweave.settings.common import TlsSettings


def channel_credentials(tls: TlsSettings) -> grpc.ChannelCredentials:
    """Return what a client shows and expects; InvalidSettingsError if a file cannot be used."""
    _check(tls)
    return grpc.ssl_channel_credentials(
        root_certificates=tls.ca_file.read_bytes(),
        private_key=tls.key_file.read_bytes(),
        certificate_chain=tls.cert_file.read_bytes(),
    )


def server_credentials(tls: TlsSettings) -> grpc.ServerCredentials:
    """Return what a server shows, and demands of every client; InvalidSettingsError if a file cannot be used."""
    _check(tls)
    return grpc.ssl_server_credentials(
        [(tls.key_file.read_bytes(), tls.cert_file.read_bytes())],
        root_certificates=tls.ca_file.read_bytes(),
        require_client_auth=True,
    )


def _check(tls: TlsSettings) -> None:
    """Load the files once with the standard library, which says what is wrong; gRPC only fails later."""
    context = ssl.create_default_context()
    try:
        for file in (tls.ca_file, tls.cert_file, tls.key_file):
            file.read_bytes()
        context.load_verify_locations(tls.ca_file)
        context.load_cert_chain(tls.cert_file, tls.key_file)
    except ssl.SSLError as error:
        names = f"tls.ca_file {tls.ca_file}, tls.cert_file {tls.cert_file} and tls.key_file {tls.key_file}"
        raise InvalidSettingsError(f"{names} are not PEM files that belong together: {error.reason or error}") from None
    except OSError as error:
        raise InvalidSettingsError(f"cannot read the TLS file {error.filename}: {error.strerror}") from None
