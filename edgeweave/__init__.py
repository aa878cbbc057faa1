"""edgeweave: large-model inference split by layers between a site and a distant cloud.

This package is the library that the four services share, and the client SDK. See `docs/lifecycle.md` for the
way of one request, and `docs/glossary.md` for the words.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgeweave.client import Client

__all__ = ["Client", "__version__"]
__version__ = "0.1.0"


def __getattr__(name: str) -> type["Client"]:
    """Load the client when it is first asked for: who uses other parts needs no gRPC."""
    if name != "Client":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from edgeweave.client import Client  # noqa: PLC0415 - late on purpose

    return Client


def __dir__() -> list[str]:
    """Name the client, too, although it is loaded late."""
    return sorted({*globals(), *__all__})
