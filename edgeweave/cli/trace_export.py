"""`edgeweave trace export`: the last minutes of a mesh as a file that a viewer of traces opens.

Knows the formats and how the scheduler is asked. Does not know what spans mean.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from edgeweave.cli.site_address import dialled
from edgeweave.client import Client
from edgeweave.errors import InvalidSettingsError, UnavailableError
from edgeweave.tracing.formats.jaeger import jaeger_json
from edgeweave.tracing.formats.otlp_json import otlp_json
from edgeweave.tracing.formats.perfetto import perfetto_json
from edgeweave.tracing.span import Span


class TraceFormat(Enum):
    """What opens the file: ui.perfetto.dev or chrome://tracing, Jaeger's upload, or a reader of OTLP."""

    PERFETTO = "perfetto"
    JAEGER = "jaeger"
    OTLP = "otlp"


_WRITTEN: Mapping[TraceFormat, Callable[[Iterable[Span]], dict[str, Any]]] = {
    TraceFormat.PERFETTO: perfetto_json,
    TraceFormat.JAEGER: jaeger_json,
    TraceFormat.OTLP: otlp_json,
}


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What is asked for. What is None is left to the settings file, the variables and the defaults."""

    file: Path
    form: TraceFormat = TraceFormat.PERFETTO
    last_s: float | None = None
    scheduler: str | None = None
    tls_ca_file: Path | None = None
    tls_cert_file: Path | None = None
    tls_key_file: Path | None = None
    config: Path | None = None


async def read_kept(options: ExportOptions) -> list[Span]:
    """Return the spans that the scheduler keeps.

    Raises:
        InvalidSettingsError: a setting is wrong, or a TLS file cannot be used.
        UnavailableError: the scheduler does not answer, or keeps no spans of that time.
    """
    settings = dialled(options, os.environ)
    async with Client(settings.scheduler, tls=settings.tls) as client:
        spans = [span async for span in client.read_spans(last_s=options.last_s)]
    if not spans:
        raise UnavailableError(
            f"the scheduler at {settings.scheduler} keeps no spans of that time; ask for a longer one, "
            "or start it with more than --keep-spans 0"
        )
    return spans


def write_trace(spans: Iterable[Span], options: ExportOptions) -> None:
    """Write spans to the file.

    Raises:
        InvalidSettingsError: the file cannot be written.
    """
    try:
        options.file.write_text(json.dumps(_WRITTEN[options.form](spans)), encoding="utf-8")
    except OSError as error:
        raise InvalidSettingsError(f"trace export: {options.file} cannot be written: {error.strerror}") from error
