"""How a bench ends: what it prints, and its exit code."""

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any

from edgeweave.errors import EdgeweaveError


def exit_code(bench: Coroutine[Any, Any, list[str]]) -> int:
    """Run `bench`, which returns what failed; print that, and return 1 for it, 2 for what the user has to change."""
    try:
        failures = asyncio.run(bench)
    except KeyboardInterrupt:
        return 130
    except EdgeweaveError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    for line in failures:
        print(f"FAILED {line}")
    return 1 if failures else 0
