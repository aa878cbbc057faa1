"""Settings that every service has."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from edgeweave.settings.values import OptionalText, null_word


class TlsSettings(BaseModel):
    """Mutual TLS: each side shows its certificate and checks the other's."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ca_file: Path = Field(description="PEM file with the authorities that peers are checked against")
    cert_file: Path = Field(description="PEM file with the certificate chain of this service")
    key_file: Path = Field(description="PEM file with the private key of this service")


class CommonSettings(BaseModel):
    """Base of the settings of a service. Immutable; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    section: ClassVar[str]
    """Name of the service: its section in the file, and the word in its variables."""

    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        BeforeValidator(lambda value: value.lower() if isinstance(value, str) else value),
    ] = Field(default="info", description="least severe log line that is written: debug, info, warning or error")
    log_format: Literal["console", "json"] = Field(
        default="console", description="form of a log line: console for people, json for machines"
    )
    otlp_endpoint: OptionalText = Field(
        default=None,
        description="URL of an OTLP/gRPC collector for the spans of gateway and scheduler; none exports nothing",
    )
    tls: Annotated[TlsSettings | None, BeforeValidator(null_word)] = Field(
        default=None, description="mutual TLS: ca_file, cert_file and key_file; without it, plain TCP"
    )
