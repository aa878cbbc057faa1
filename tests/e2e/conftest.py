"""One mesh of real processes for all tests of a run: the engines load torch once."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from openai import AsyncOpenAI

from fakes.processes import ProcessMesh, process_mesh
from models.served import served_model

NUM_BLOCKS = 96
_BLOCK_TOKENS = 16
_BYTES_PER_TOKEN_AND_LAYER = 128
_EDGE_LAYERS = 2
_CLOUD_LAYERS = 4


@pytest.fixture(scope="session")
def model() -> Path:
    """Folder of the tiny model that the mesh serves."""
    return served_model()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def mesh(model: Path) -> AsyncIterator[ProcessMesh]:
    """A mesh with a link of 2 ms and few KV blocks, equal on both sides."""
    layer_bytes = NUM_BLOCKS * _BLOCK_TOKENS * _BYTES_PER_TOKEN_AND_LAYER
    flags = {
        "edge": ["--kv-bytes", str(_EDGE_LAYERS * layer_bytes)],
        "cloud": ["--kv-bytes", str(_CLOUD_LAYERS * layer_bytes)],
        "scheduler": ["--max-seq-len", "1400"],
    }
    async with process_mesh(model, rtt_ms=2, flags=flags) as served:
        yield served


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def openai(mesh: ProcessMesh) -> AsyncIterator[AsyncOpenAI]:
    """The SDK of OpenAI, against the gateway of the mesh; what fails is not tried again."""
    async with AsyncOpenAI(base_url=f"{mesh.url}/v1", api_key="unused", max_retries=0) as client:
        yield client
