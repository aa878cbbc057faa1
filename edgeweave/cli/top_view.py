"""How `edgeweave top` looks: one interval of a mesh on one screen of 80 columns.

Knows words, units and colours. Does not know how the mesh is asked; see docs/bubbles.md for how to read it.
"""

from collections.abc import Iterable, Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from edgeweave.cli.top_interval import MeshInterval, engine_words
from edgeweave.client import MeshState, SessionState
from edgeweave.client.engine_use import EngineUse
from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import BubbleCause, Plan
from edgeweave.interleave.plans import PLAN_NAMES
from edgeweave.interleave.recent_times import Quantiles
from edgeweave.interleave.request_totals import RequestEnd

NOTHING = "-"
_NAME_WIDTH = 28
_VISIBLE = 0.01
"""A bubble below this share is not coloured."""


def interval_view(interval: MeshInterval, *, target: str) -> RenderableType:
    """Return the picture of one interval of the mesh whose scheduler is at `target`."""
    return Group(_lines(interval, target=target), Text(), _engines(interval), Text(), _times(interval.state))


def waiting_view(reason: str | None, *, target: str) -> RenderableType:
    """Return what is shown while there is nothing to show: why, where a reason is known."""
    if reason is None:
        return Text(f"asks the scheduler at {target}", style="dim")
    return Group(Text(reason, style="bold red"), Text("waits for it; Ctrl-C ends", style="dim"))


def _lines(interval: MeshInterval, *, target: str) -> Table:
    """Return all that is said in words."""
    state = interval.state
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    table.add_row("mesh", _mesh_words(interval, target=target))
    table.add_row("plan", _plan_words(state.plan) if state.plan is not None else NOTHING)
    table.add_row(
        "requests",
        f"{state.num_running} running, {state.num_waiting} waiting, {state.num_releasing} releasing; "
        f"{interval.num_preemptions} preempted, {state.num_preemptions} in all",
    )
    table.add_row("ended", f"{_end_words(interval.ends)}; since the start {_end_words(state.ends)}")
    table.add_row("in flight", _flight_words(interval))
    table.add_row("rates", _rate_words(interval))
    table.add_row("link", _link_words(interval))
    return table


def _mesh_words(interval: MeshInterval, *, target: str) -> Text:
    state = interval.state
    style = "green" if state.state is SessionState.READY else "bold red"
    words = Text.assemble(f"{target}, ", (state.state.name.lower(), style))
    if state.edge is not None:
        words.append(f", session {state.session}")
    words.append(f", the last {interval.wall_us / 1e6:.1f} s")
    if state.reason is not None:
        words.append(f": {state.reason}", style=style)
    return words


def _plan_words(plan: Plan) -> str:
    names = {kind: name for name, kind in PLAN_NAMES.items()}
    chunks, steps = _counted(plan.max_prefills, "chunk"), _counted(plan.max_steps, "step")
    words = [
        f"{names[plan.kind]} ({plan.plan}): {chunks}, {steps} of {_counted(plan.max_batch_size, 'row')} at most",
        "next head first" if plan.next_head_first else "tail first",
    ]
    if plan.decode_return_us:
        words.append(f"step back in {_time(plan.decode_return_us)}")
    if plan.max_grace_us:
        words.append(f"grace up to {_time(plan.max_grace_us)}")
    if plan.min_segment_us:
        words.append(f"segment of {_time(plan.min_segment_us)} or more")
    if plan.fill_to_rows:
        words.append(f"filled to {_counted(plan.fill_to_rows, 'row')} at {_time(plan.fill_row_us)} each")
    if plan.may_fuse:
        words.append("rows of a step may ride in a segment")
    return ", ".join(words)


def _end_words(ends: Mapping[RequestEnd, int]) -> str:
    return ", ".join(f"{number:,} {end.name.lower()}" for end, number in sorted(ends.items()) if number) or "none"


def _flight_words(interval: MeshInterval) -> str:
    rows = interval.rows_per_step
    of_rows = f" of {rows:,.1f} rows" if rows is not None else ""
    return (
        f"{_counted(interval.state.num_chunks, 'chunk')}, {interval.steps_in_flight:.1f} steps{of_rows}; "
        f"{_counted(interval.state.num_decoding, 'sequence')} through prefill"
    )


def _rate_words(interval: MeshInterval) -> str:
    return (
        f"{interval.per_s(interval.num_prefill_tokens):,.0f} tokens/s in, "
        f"{interval.per_s(interval.num_output_tokens):,.0f} out; "
        f"{interval.per_s(interval.num_chunks):,.1f} chunks/s, {interval.per_s(interval.num_steps):,.1f} steps/s"
    )


def _link_words(interval: MeshInterval) -> str:
    if interval.state.edge is None:
        return NOTHING
    if interval.state.cloud is None:
        return "none, all layers are in one place"
    return (
        f"round trip {_time(interval.state.rtt_us)}, {_percent(interval.hidden_share)} of it hidden; "
        f"{interval.up_bits_per_s / 1e6:,.0f} Mbit/s up, {interval.down_bits_per_s / 1e6:,.0f} down"
    )


def _engines(interval: MeshInterval) -> Table:
    """Return where the time of each engine went; what is in it adds up to 100 %."""
    uses = [interval.engines.get(side) for side in Side]
    states = (interval.state.edge, interval.state.cloud)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("time of an engine", no_wrap=True, min_width=_NAME_WIDTH)
    for side, use in zip(Side, uses, strict=True):
        table.add_column(f"{side.value}, {engine_words(use)}", justify="right", no_wrap=True)
    table.add_row("busy", *(_share(use, use.busy_us if use else 0, style="green") for use in uses))
    for cause in _shown_causes(uses):
        shares = (_share(use, use.bubbles_us.get(cause, 0) if use else 0, style="yellow") for use in uses)
        table.add_row(f"bubble, {cause.name.lower()}", *shares)
    table.add_row("idle", *(_share(use, use.idle_us if use else 0, style="dim") for use in uses))
    table.add_row("KV used", *(_percent(state.reserved_share if state else None) for state in states))
    return table


def _shown_causes(uses: Iterable[EngineUse | None]) -> list[BubbleCause]:
    """Return the causes that have a line: all, so that the picture stands still, but `lost` only where it occurred."""
    occurred = {cause for use in uses if use is not None for cause in use.bubbles_us}
    return [cause for cause in BubbleCause if cause is not BubbleCause.LOST or cause in occurred]


def _times(state: MeshState) -> Table:
    """Return how long users waited in the last minute."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("the last minute", no_wrap=True, min_width=_NAME_WIDTH)
    for name in ("p50", "p90", "p99", "requests"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, quantiles in (
        ("queue", state.queue_time),
        ("time to first token", state.time_to_first_token),
        ("time per output token", state.time_per_token),
    ):
        table.add_row(name, *_quantile_words(quantiles))
    return table


def _quantile_words(quantiles: Quantiles | None) -> list[str]:
    if quantiles is None:
        return [NOTHING, NOTHING, NOTHING, "0"]
    times_us = (quantiles.p50_us, quantiles.p90_us, quantiles.p99_us)
    return [*map(_time, times_us), f"{quantiles.num_times:,}"]


def _share(use: EngineUse | None, time_us: int, *, style: str) -> Text:
    share = use.share(time_us) if use is not None else None
    return Text(_percent(share), style=style if share is not None and share >= _VISIBLE else "dim")


def _percent(share: float | None) -> str:
    return NOTHING if share is None else f"{share:.1%}"


def _time(time_us: int) -> str:
    """Return a time with three digits or so: 0.4 ms, 25.1 ms, 312 ms, 12.3 s."""
    if time_us >= 10_000_000:  # noqa: PLR2004 (ten seconds)
        return f"{time_us / 1e6:,.1f} s"
    return f"{time_us / 1e3:,.0f} ms" if time_us >= 100_000 else f"{time_us / 1e3:.1f} ms"  # noqa: PLR2004 (a tenth)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
