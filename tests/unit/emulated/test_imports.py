"""What an emulated engine must not load."""

import subprocess
import sys


def test_no_torch() -> None:
    """Emulated engines start at once: they load no model code."""
    code = (
        "import sys, edgeweave.emulated, edgeweave_edge.__main__, edgeweave_cloud.__main__\n"
        "print(sorted({'torch', 'transformers', 'edgeweave.model'} & sys.modules.keys()))"
    )
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - its own words
    assert result.stdout.strip() == "[]"
