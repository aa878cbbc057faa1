"""`edgeweave serve`: become one service.

Knows which packages a service needs. Imports none of them, and none of the services.
"""

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import NoReturn

from edgeweave.cli.mesh_options import SERVICE_MODULES
from edgeweave.errors import InvalidSettingsError

_EXTRAS = {
    "demo": ("demo", ("httpx", "tokenizers", "fastapi", "torch", "transformers", "gguf")),
    "gateway": ("gateway", ("fastapi", "uvicorn", "tokenizers", "jinja2")),
    "edge": ("engine", ("torch", "transformers", "safetensors", "numpy")),
    "cloud": ("engine", ("torch", "transformers", "safetensors", "numpy")),
    "plan --plot": ("plot", ("matplotlib",)),
}


def become_service(service: str, arguments: Sequence[str]) -> NoReturn:
    """Replace this process by the service, with `arguments` as its flags.

    Raises:
        InvalidSettingsError: packages are missing; names the extra that brings them.
    """
    require_packages(service)
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", SERVICE_MODULES[service], *arguments])  # noqa: S606 (no shell)


def require_packages(part: str) -> None:
    """Check that what a service, the demo or a plot needs is installed.

    Raises:
        InvalidSettingsError: packages are missing; names the extra that brings them.
    """
    extra, packages = _EXTRAS.get(part, ("", ()))
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise InvalidSettingsError(
            f"{part}: not installed: {', '.join(missing)}; run: pip install 'edgeweave[{extra}]'"
        )
