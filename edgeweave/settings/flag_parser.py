"""A parser of flags that raises what is wrong instead of ending the interpreter."""

import argparse
from typing import NoReturn

from edgeweave.errors import InvalidSettingsError


class FlagParser(argparse.ArgumentParser):
    """`argparse` with whole flag names, and with errors as one line."""

    def __init__(self, *, prog: str, description: str | None) -> None:
        super().__init__(prog=prog, description=description, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Raise `message`.

        Raises:
            InvalidSettingsError: always.
        """
        raise InvalidSettingsError(f"flags: {message}; --help lists all flags")
