"""Tables of the bench as Markdown.

Knows columns and how a figure is written. A column in which no cell has a figure is left out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weaving.answers import Latency
from weaving.cells import Cell, Compared, Table
from weaving.cpu import control_share
from weaving.loads import BenchLoad
from weaving.run import MOST_SLOWDOWN
from weaving.use import cause_words

Column = tuple[str, Callable[[Cell], str | None]]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where figures come from: the command, and what of the machine matters."""

    command: str
    machine: str


def table_page(table: Table, origin: Origin, *, plots: Sequence[str] = ()) -> str:
    """Return the page of one load; `plots` are file names beside it."""
    parts = [
        f"# Load {table.load.name}, {table.load.title}, {table.engines} engines",
        f"Written by `{origin.command}` on {origin.machine}. What the columns mean: [README](README.md).",
        _load_line(table.load),
        "## One place",
        _markdown(_PLAIN_COLUMNS, table.one_place),
        _baseline_line(table),
        "## Split",
        _markdown(_SPLIT_COLUMNS, table.split),
        *(f"![{name.rpartition('.')[0]}]({name})" for name in plots),
    ]
    return "\n\n".join(parts) + "\n"


def _baseline_line(table: Table) -> str:
    line = f"The best plan of one place is `{table.baseline}`; all ratios are to it"
    if table.baseline_apart == table.baseline:
        return f"{line}."
    return f"{line}, but those under **apart**, which are to `{table.baseline_apart}`, the best whose rows run apart."


def _load_line(load: BenchLoad) -> str:
    prompts = [arrival.num_prompt_tokens for arrival in load.load.arrivals]
    outputs = load.num_output_tokens
    if load.is_open:
        last_s = load.load.arrivals[-1].at_us / 1e6
        coming = f"the last of them after {last_s:.1f} s"
    else:
        coming = "all at once" if load.load.max_open is None else f"at most {load.load.max_open} open"
    return (
        f"{len(prompts)} requests, {coming}; prompts of {_span(prompts)} tokens, outputs of {_span(outputs)}; "
        f"at most {load.max_batch_size} sequences in a decode step."
    )


def _span(values: Sequence[int]) -> str:
    return str(values[0]) if min(values) == max(values) else f"{min(values)} to {max(values)}"


def _markdown(columns: Sequence[Column], cells: Sequence[Cell]) -> str:
    rows = [[show(cell) for _, show in columns] for cell in cells]
    shown = [index for index in range(len(columns)) if any(row[index] is not None for row in rows)]
    lines = [
        _line([columns[index][0] for index in shown]),
        _line(["---"] * len(shown)),
        *(_line([row[index] or "" for index in shown]) for row in rows),
    ]
    return "\n".join(lines)


def _line(words: Sequence[str]) -> str:
    return f"| {' | '.join(words)} |"


def _compared(said: str, of: Callable[[Cell], Compared | None]) -> tuple[Column, ...]:
    """Return the columns that compare with one plan of one place, their names beginning with `said`."""

    def column(name: str, show: Callable[[Compared], object | None]) -> Column:
        return f"{said}{name}", lambda cell: _shown(of(cell), show)

    return (
        column("whole run", lambda compared: compared.ratio),
        column("steady state", lambda compared: compared.steady),
        column("bound", lambda compared: None if compared.bound is None else f"{compared.bound:.2f}"),
        column("steady / bound", _of_bound),
        column("goodput", lambda compared: compared.goodput),
    )


def _shown(compared: Compared | None, show: Callable[[Compared], object | None]) -> str | None:
    figure = None if compared is None else show(compared)
    return None if figure is None else str(figure)


def _of_bound(compared: Compared) -> str | None:
    if compared.steady is None or compared.bound is None:
        return None
    return f"{compared.steady.median / compared.bound:.2f}"


def _lost_most(cell: Cell) -> str | None:
    return None if cell.loss is None else f"{cell.loss.cause} {cell.loss.share:.0%}"


def _bubbles(cell: Cell) -> str:
    shares = [f"{cause_words(cause)} {share:.0%}" for cause, share in cell.bubbles.items() if share >= 0.005]  # noqa: PLR2004 - else it reads 0 %
    return ", ".join(shares) or "none"


def _first_tokens(latency: Latency) -> str:
    return f"{latency.ttft_p50_ms:,.0f} / {latency.ttft_p90_ms:,.0f}"


def _later_tokens(latency: Latency) -> str | None:
    if latency.tpot_p50_ms is None or latency.tpot_p90_ms is None:
        return None
    return f"{latency.tpot_p50_ms:.1f} / {latency.tpot_p90_ms:.1f}"


def _slowdown(cell: Cell) -> str | None:
    return f"{cell.slowdown:.2f}" if cell.slowdown > MOST_SLOWDOWN else None


def _cpu(cell: Cell) -> str:
    return ", ".join(f"{name} {share:.0%}" for name, share in cell.cpu.items())


_COMMON_COLUMNS: tuple[Column, ...] = (
    ("TTFT p50 / p90, ms", lambda cell: _first_tokens(cell.latency)),
    ("TPOT p50 / p90, ms", lambda cell: _later_tokens(cell.latency)),
    ("busy", lambda cell: f"{cell.busy_share:.0%}"),
    ("bubbles", _bubbles),
    ("control", lambda cell: f"{control_share(cell.cpu):.0%}"),
    ("CPU of a core", _cpu),
    ("slowed by others", _slowdown),
)
_PLAIN_COLUMNS: tuple[Column, ...] = (
    ("plan", lambda cell: cell.variant),
    ("runs", lambda cell: str(cell.num_runs)),
    ("tokens/s", lambda cell: f"{cell.tokens_per_s:,.0f}"),
    *_COMMON_COLUMNS,
)
_SPLIT_COLUMNS: tuple[Column, ...] = (
    ("place", lambda cell: str(cell.place)),
    ("plan", lambda cell: cell.variant),
    ("runs", lambda cell: str(cell.num_runs)),
    *_compared("", lambda cell: cell.best),
    *_compared("apart: ", lambda cell: cell.apart),
    ("outside, ms", lambda cell: None if cell.decode_return_ms is None else f"{cell.decode_return_ms:.1f}"),
    ("to serial", lambda cell: None if cell.over_serial is None else str(cell.over_serial)),
    ("lost most by", _lost_most),
    *_COMMON_COLUMNS,
)
