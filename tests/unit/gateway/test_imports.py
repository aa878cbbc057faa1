"""What the gateway's process must not load."""

import subprocess
import sys


def test_no_heavy_imports() -> None:
    """Neither the text package nor the gateway imports torch or transformers."""
    code = (
        "import sys, edgeweave, edgeweave.text, edgeweave.client, edgeweave_gateway.__main__\n"
        "print(sorted({'torch', 'transformers', 'numpy'} & sys.modules.keys()))"
    )
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - its own words
    assert result.stdout.strip() == "[]"


def test_package_without_grpc() -> None:
    """The package names its client without loading gRPC; the client loads it, and needs no tokenizer for ids."""
    code = (
        "import sys, edgeweave\n"
        "before = 'grpc' in sys.modules\n"
        "name = edgeweave.Client.__name__\n"
        "print('Client' in dir(edgeweave), before, name, 'grpc' in sys.modules, 'tokenizers' in sys.modules)"
    )
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - its own words
    assert result.stdout.split() == ["True", "False", "Client", "True", "False"]
