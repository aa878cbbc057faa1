"""What the demo shows in the end: times of the answers, and what the cloud did."""

from collections.abc import Sequence
from statistics import mean

from rich.table import Table

from edgeweave.cli.chat import Answer
from edgeweave.cli.cloud_use import CloudUse


def times_table(alone: Answer, together: Sequence[Answer]) -> Table:
    """Return what the users saw: one answer alone, and several side by side."""
    table = Table(title="What a user sees")
    table.add_column("")
    table.add_column("one alone", justify="right")
    table.add_column(f"{len(together)} side by side", justify="right")
    table.add_row("time to first token", _ms(alone.first_s), _ms(mean(answer.first_s for answer in together)))
    table.add_row("time per token", _ms(alone.token_s), _ms(mean(answer.token_s for answer in together)))
    table.add_row("tokens per second", _rate([alone]), _rate(together))
    return table


def cloud_table(use: CloudUse, *, distance_km: float) -> Table:
    """Return what the cloud did while requests were open."""
    table = Table(title=f"The cloud, {distance_km:,.0f} km away (round trip {use.rtt_us / 1000:.1f} ms)")
    table.add_column("while requests were open")
    table.add_column("", justify="right")
    table.add_row("busy", f"{use.share(use.busy_us):.0%}")
    for cause, time_us in sorted(use.bubbles_us.items()):
        table.add_row(f"bubble: {cause.name.lower().replace('_', ' ')}", f"{use.share(time_us):.0%}")
    table.add_row("hidden states over the link", f"{use.link_bytes / 1e6:.1f} MB")
    table.add_row("time outside the cloud that other work hid", f"{use.hidden_share:.0%}")
    return table


def _ms(time_s: float) -> str:
    return f"{time_s * 1000:,.0f} ms"


def _rate(answers: Sequence[Answer]) -> str:
    return f"{sum(answer.num_tokens for answer in answers) / max(answer.last_s for answer in answers):.1f}"
