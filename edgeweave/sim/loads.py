"""Loads and profiles by name, as the command line and the bench call them."""

from pathlib import Path

import yaml

from edgeweave.errors import InvalidRequestError
from edgeweave.sim.load import Load, read_trace, uniform_load
from edgeweave.sim.profile import PROFILES, LayerTimes, Profile

SEED = 7
LOADS = ("balanced", "prefill-rich", "prefill-only", "decode-only")


def load_named(name: str, *, divide_by: int = 1, limit: int | None = None) -> Load:
    """Return the load called `name`, or the trace in the file `name`.

    Raises:
        InvalidRequestError: there is neither.
    """
    if name == "balanced":
        return uniform_load(
            name, num_requests=60, prompt_tokens=(256, 512), output_tokens=(32, 64), seed=SEED, max_open=12
        )
    if name == "prefill-rich":
        return uniform_load(
            name, num_requests=120, prompt_tokens=(256, 512), output_tokens=(16, 32), seed=SEED, max_open=22
        )
    if name == "prefill-only":
        return uniform_load(name, num_requests=40, prompt_tokens=(256, 512), output_tokens=(1, 1), seed=SEED)
    if name == "decode-only":
        return uniform_load(name, num_requests=16, prompt_tokens=(8, 8), output_tokens=(256, 256), seed=SEED)
    path = Path(name)
    if not path.is_file():
        raise InvalidRequestError(f"load {name!r} is neither a file nor one of {', '.join(LOADS)}")
    return read_trace(path, divide_by=divide_by, limit=limit)


def profile_named(name: str) -> Profile:
    """Return the profile called `name`, or the one in the YAML file `name`.

    Raises:
        InvalidRequestError: there is neither, or the file lacks a value.
    """
    if name in PROFILES:
        return PROFILES[name]
    path = Path(name)
    if not path.is_file():
        raise InvalidRequestError(f"profile {name!r} is neither a file nor one of {', '.join(PROFILES)}")
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
        edge, cloud = (LayerTimes(**values.pop(side)) for side in ("edge", "cloud"))
        return Profile(name=path.stem, edge=edge, cloud=cloud, **values)
    except (AttributeError, KeyError, TypeError, yaml.YAMLError) as error:
        raise InvalidRequestError(f"{path}: not a profile ({error}); compare edgeweave/sim/profile.py") from None
