"""Generates `edgeweave/v1` from `protos/`, or tells whether what is checked in is what would be generated.

Knows the compiler plugins and which outputs are kept: a contract without a service gets no `_grpc` modules.
Does not know what the messages mean.
"""

import argparse
import filecmp
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROTOS = ROOT / "protos"
GENERATED = Path("edgeweave/v1")
PATTERNS = ("*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py", "*_pb2_grpc.pyi")


def main() -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=("generate", "check"))
    verb = parser.parse_args().verb
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder)
        compile_contracts(into=fresh)
        return replace(fresh / GENERATED) if verb == "generate" else compare(fresh / GENERATED)


def compile_contracts(*, into: Path) -> None:
    """Compile every contract; messages and their stubs for all, service code where a service is declared."""
    contracts = sorted(PROTOS.rglob("*.proto"))
    compile_with("--python_out", "--mypy_out", contracts=contracts, into=into)
    serving = [path for path in contracts if re.search(r"^service ", path.read_text(), re.MULTILINE)]
    compile_with("--grpc_python_out", "--mypy_grpc_out=only_async:", contracts=serving, into=into)


def compile_with(*outputs: str, contracts: list[Path], into: Path) -> None:
    """Run the protocol compiler of this environment with the given output options."""
    scripts = Path(sys.executable).parent
    plugins = [f"--plugin={scripts / name}" for name in ("protoc-gen-mypy", "protoc-gen-mypy_grpc")]
    targets = [f"{option}{into}" if "=" in option else f"{option}={into}" for option in outputs]
    names = [str(path.relative_to(PROTOS)) for path in contracts]
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTOS}", *plugins, *targets, *names]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - fixed words and our own paths
    if outcome.returncode:
        sys.exit(f"the protocol compiler failed:\n{outcome.stderr.strip()}")


def replace(fresh: Path) -> int:
    """Put the fresh modules in place of those that are checked in."""
    for name in generated_names(ROOT / GENERATED) - generated_names(fresh):
        (ROOT / GENERATED / name).unlink()
    for name in sorted(generated_names(fresh)):
        shutil.copyfile(fresh / name, ROOT / GENERATED / name)
    print(f"{GENERATED}: {len(generated_names(fresh))} modules generated")
    return 0


def compare(fresh: Path) -> int:
    """Name each module that differs, is missing or has no contract any more."""
    kept = ROOT / GENERATED
    names = generated_names(fresh) | generated_names(kept)
    same, _, _ = filecmp.cmpfiles(fresh, kept, names, shallow=False)
    stale = sorted(names - set(same))
    for name in stale:
        print(f"{GENERATED / name}: not what protos/ generates; run `make protos`")
    return 1 if stale else 0


def generated_names(folder: Path) -> set[str]:
    """Return the file names of generated modules in `folder`."""
    return {path.name for pattern in PATTERNS for path in folder.glob(pattern)}


if __name__ == "__main__":
    sys.exit(main())
