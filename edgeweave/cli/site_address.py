"""Where the scheduler of a site is, and how a command speaks to it: as the gateway of the site does.

Knows flags, settings file and variables. Does not know what is asked.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from edgeweave.settings import GatewaySettings, load


class Addressed(Protocol):
    """Options that name a scheduler. What is None is left to the settings file, the variables and the defaults."""

    @property
    def scheduler(self) -> str | None:
        """Its address, `host:port`."""

    @property
    def tls_ca_file(self) -> Path | None:
        """The authorities of the site."""

    @property
    def tls_cert_file(self) -> Path | None:
        """Our certificate chain."""

    @property
    def tls_key_file(self) -> Path | None:
        """Our private key."""

    @property
    def config(self) -> Path | None:
        """The settings file."""


def dialled(options: Addressed, environ: Mapping[str, str]) -> GatewaySettings:
    """Return where the scheduler is and how it is spoken to.

    Raises:
        InvalidSettingsError: one line for each thing that is wrong.
    """
    values = {
        "--config": options.config,
        "--scheduler": options.scheduler,
        "--tls-ca-file": options.tls_ca_file,
        "--tls-cert-file": options.tls_cert_file,
        "--tls-key-file": options.tls_key_file,
        "--model": Path(),  # a gateway needs one; who watches does not
    }
    argv = [word for flag, value in values.items() if value is not None for word in (flag, str(value))]
    return load(GatewaySettings, argv, environ)
