"""Folders that a flag names, made where they are missing.

Knows file errors and says them in one line. Does not know what the folders are for.
"""

from pathlib import Path

from edgeweave.errors import InvalidSettingsError


def made_folder(folder: Path, *, flag: str) -> Path:
    """Return `folder`, which exists then.

    Raises:
        InvalidSettingsError: it cannot be made; names the flag.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidSettingsError(f"{flag} {folder}: {error.strerror}; name a folder that can be made") from error
    return folder
