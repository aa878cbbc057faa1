"""The `edgeweave` command. Imports no service and no torch."""

import sys
from collections.abc import Sequence

import typer

from edgeweave.cli.app import app
from edgeweave.errors import EdgeweaveError, InvalidRequestError, ModelError

_FAILED = 1
_USER_ERROR = 2
_INTERRUPTED = 130


def main() -> None:
    """Run the command line of this process, and exit."""
    sys.exit(run(sys.argv[1:]))


def run(argv: Sequence[str]) -> int:
    """Run a command line and return its exit code: 2, and a line for each error, where the user is mistaken."""
    try:
        code = app(args=argv, prog_name="edgeweave", standalone_mode=False)
    except typer.TyperException as error:
        message = " ".join(error.format_message().replace("Value error, ", "").split())
        return _refuse(f"edgeweave: {message} (edgeweave --help lists what there is)", _USER_ERROR)
    except (InvalidRequestError, ModelError) as error:
        return _refuse(str(error), _USER_ERROR)
    except EdgeweaveError as error:
        return _refuse(str(error), _FAILED)
    except KeyboardInterrupt:
        return _INTERRUPTED
    return code if isinstance(code, int) else 0


def _refuse(text: str, code: int) -> int:
    sys.stderr.write(f"{text}\n")
    return code
