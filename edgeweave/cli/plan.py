"""`edgeweave plan`: from model, hardware, link and load to what to run and how far away the cloud may be.

Knows how the question is put. The arithmetic and the simulations are in `edgeweave.sim`.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from edgeweave.cli.plan_report import as_json, print_report
from edgeweave.cli.serve import require_packages
from edgeweave.cli.sim_limits import sim_limits
from edgeweave.errors import InvalidRequestError
from edgeweave.interleave.split import Split
from edgeweave.sim.backlog import as_backlog
from edgeweave.sim.case import Case
from edgeweave.sim.curves import draw_up
from edgeweave.sim.hardware import Machine, hardware_named
from edgeweave.sim.load import Load
from edgeweave.sim.loads import load_named, profile_named
from edgeweave.sim.model_size import ModelSize
from edgeweave.sim.profile import Profile
from edgeweave.sim.recommend import recommend
from edgeweave.sim.roofline import Usage, profile_of

PLOT_ENDINGS = (".svg", ".png")


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """A model folder and the machines that it is to run on; an `edge_hardware` of `None` is that of the cloud."""

    folder: Path
    hardware: str
    edge_hardware: str | None
    cloud_devices: int
    edge_devices: int
    split: str


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What is to be planned, in the words of the command line. A `model` takes the place of a `profile`."""

    profile: str
    model: ModelOptions | None
    load: str
    distance_km: float
    bandwidth_gbit: float
    max_batch_size: int
    max_prefill_tokens: int
    max_seq_len: int
    chunk_tokens: int
    max_loss_percent: float
    divide_by: int
    limit: int | None
    plot: Path | None
    is_json: bool


def run_plan(options: PlanOptions, *, console: Console, progress: Console) -> None:
    """Recommend a plan: the answer goes to `console`, what is being simulated to `progress` while it is a terminal.

    Raises:
        InvalidRequestError: a name is not known, or a request of the load can never be served.
        ModelError: a model folder cannot be read, or its layers cannot be counted.
        InvalidSettingsError: a plot is wanted and matplotlib is missing.
    """
    _check_plot(options.plot)
    case = _case(options)
    with progress.status("") as status:

        def on_run(what: str) -> None:
            status.update(f"simulating {what}")

        found = recommend(case, max_loss=options.max_loss_percent / 100, on_run=on_run)
        curves = draw_up(found, on_run=on_run) if options.plot is not None else None
    if curves is not None and options.plot is not None:
        from edgeweave.cli.plan_plot import save_plot  # noqa: PLC0415 (needs a package that nothing else does)

        save_plot(found, curves, options.plot)
    if options.is_json:
        console.print(json.dumps(as_json(found), indent=2), highlight=False, markup=False, soft_wrap=True)
    else:
        print_report(found, console)


def _check_plot(plot: Path | None) -> None:
    """Refuse a plot that could not be written before minutes are spent on it."""
    if plot is None:
        return
    require_packages("plan --plot")
    if plot.suffix not in PLOT_ENDINGS:
        raise InvalidRequestError(f"{plot}: a plot ends in {' or '.join(PLOT_ENDINGS)}")
    if not plot.parent.is_dir():
        raise InvalidRequestError(f"{plot}: folder {plot.parent} does not exist; make it first")


def _case(options: PlanOptions) -> Case:
    load = as_backlog(
        load_named(options.load, divide_by=options.divide_by, limit=options.limit),
        max_batch_size=options.max_batch_size,
    )
    limits = sim_limits(
        max_batch_size=options.max_batch_size,
        max_prefill_tokens=options.max_prefill_tokens,
        max_seq_len=options.max_seq_len,
        chunk_tokens=options.chunk_tokens,
    )
    return Case(_profile(options, load), load, limits, options.distance_km, options.bandwidth_gbit)


def _profile(options: PlanOptions, load: Load) -> Profile:
    model = options.model
    if model is None:
        return _checked(profile_named(options.profile))
    return profile_of(
        ModelSize.of_folder(model.folder),
        cloud=Machine(hardware_named(model.hardware), model.cloud_devices),
        edge=Machine(hardware_named(model.edge_hardware or model.hardware), model.edge_devices),
        split=Split.parse(model.split),
        usage=Usage.of(load, max_batch_size=options.max_batch_size),
    )


def _checked(profile: Profile) -> Profile:
    """Return a profile that somebody wrote, if arithmetic can be done with it."""
    sides = (profile.edge, profile.cloud)
    values: list[float] = [profile.body_layers, profile.token_bytes]
    values += [time_us for times in sides for time_us in (times.step_us(1), times.prefill_us(1))]
    if min(values) <= 0:
        raise InvalidRequestError(
            f"profile {profile.name}: the cloud needs at least one layer, and times and token_bytes must be above 0"
        )
    return profile
