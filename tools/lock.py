"""Writes the versions of the environment to `constraints.txt`, so that every machine installs the same ones.

Knows how pip names what is installed. Does not choose versions: upgrade in the environment, test, then lock.
"""

import sys
from importlib import metadata
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "constraints.txt"
HEADER = "# Versions that are known to work together. Written by `make lock`; pip reads it with -c.\n"
LEFT_OUT = {"edgeweave", "pip", "setuptools"}


def main() -> int:
    """Write the file; return the exit code."""
    versions = {canonical(found.name): found.version for found in metadata.distributions()}
    lines = [f"{name}=={public(versions[name])}\n" for name in sorted(versions) if name not in LEFT_OUT]
    TARGET.write_text(HEADER + "".join(lines))
    print(f"{TARGET.name}: {len(lines)} versions")
    return 0


def canonical(name: str) -> str:
    """Return the spelling of a package name that every index understands."""
    return name.lower().replace("_", "-").replace(".", "-")


def public(version: str) -> str:
    """Return a version without the part that names one build of it, as in 2.13.0+cpu."""
    return version.partition("+")[0]


if __name__ == "__main__":
    sys.exit(main())
