"""What clients ask: requests with arrival times, prompt and output lengths. Drawn from a seed, or read from a trace.

Knows the trace formats that users have: Azure's CSV (TIMESTAMP, ContextTokens, GeneratedTokens) and Mooncake's JSON
lines (timestamp in ms, input_length, output_length). Does not know how they are served.
"""

import csv
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from edgeweave.errors import InvalidRequestError


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request: when it comes, in microseconds from the start, and how many tokens go in and out."""

    at_us: int
    num_prompt_tokens: int
    num_output_tokens: int


@dataclass(frozen=True, slots=True)
class Load:
    """Requests in order of arrival; `max_open` bounds how many a client keeps open at once, `None`: no bound."""

    name: str
    arrivals: tuple[Arrival, ...]
    max_open: int | None = None

    @property
    def num_tokens(self) -> int:
        """Tokens of all prompts and outputs."""
        return sum(arrival.num_prompt_tokens + arrival.num_output_tokens for arrival in self.arrivals)


def uniform_load(
    name: str,
    *,
    num_requests: int,
    prompt_tokens: tuple[int, int],
    output_tokens: tuple[int, int],
    seed: int,
    max_open: int | None = None,
) -> Load:
    """Return requests that all come at once, with lengths drawn uniformly from inclusive ranges."""
    rng = random.Random(seed)  # noqa: S311 - lengths, no secrets
    arrivals = tuple(Arrival(0, rng.randint(*prompt_tokens), rng.randint(*output_tokens)) for _ in range(num_requests))
    return Load(name, arrivals, max_open)


def read_trace(path: Path, *, divide_by: int = 1, limit: int | None = None) -> Load:
    """Return the load that a trace file holds; lengths are divided by `divide_by`, and at least 1.

    Raises:
        InvalidRequestError: the file is neither of the formats, or a line cannot be read; names it.
    """
    read = {".csv": _azure_rows, ".jsonl": _mooncake_rows}.get(path.suffix)
    if read is None:
        raise InvalidRequestError(f"{path}: a trace is a .csv file (Azure) or a .jsonl file (Mooncake)")
    rows = list(_within(read(path), limit))
    if not rows:
        raise InvalidRequestError(f"{path}: the trace has no requests")
    start_us = rows[0].at_us
    scaled = [
        Arrival(
            row.at_us - start_us, _share(row.num_prompt_tokens, divide_by), _share(row.num_output_tokens, divide_by)
        )
        for row in sorted(rows, key=lambda row: row.at_us)
    ]
    return Load(path.stem, tuple(scaled))


def poisson(arrivals: Sequence[Arrival], *, rate_per_s: float, seed: int) -> tuple[Arrival, ...]:
    """Return the same requests with arrival times of a Poisson process of `rate_per_s`."""
    rng = random.Random(seed)  # noqa: S311 - times, no secrets
    at_s = 0.0
    spread = []
    for arrival in arrivals:
        at_s += rng.expovariate(rate_per_s)
        spread.append(Arrival(round(at_s * 1e6), arrival.num_prompt_tokens, arrival.num_output_tokens))
    return tuple(spread)


def _azure_rows(path: Path) -> Iterator[Arrival]:
    with path.open(newline="", encoding="utf-8") as file:
        for number, row in enumerate(csv.DictReader(file), start=2):
            try:
                moment = datetime.fromisoformat(row["TIMESTAMP"][:26])
                yield Arrival(round(moment.timestamp() * 1e6), int(row["ContextTokens"]), int(row["GeneratedTokens"]))
            except (KeyError, TypeError, ValueError) as error:
                raise InvalidRequestError(f"{path}:{number}: not a line of an Azure trace ({error})") from None


def _mooncake_rows(path: Path) -> Iterator[Arrival]:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                row = json.loads(line)
                yield Arrival(int(row["timestamp"]) * 1000, int(row["input_length"]), int(row["output_length"]))
            except (KeyError, TypeError, ValueError) as error:
                raise InvalidRequestError(f"{path}:{number}: not a line of a Mooncake trace ({error})") from None


def _within(rows: Iterator[Arrival], limit: int | None) -> Iterator[Arrival]:
    for number, row in enumerate(rows):
        if limit is not None and number >= limit:
            return
        yield row


def _share(num_tokens: int, divide_by: int) -> int:
    return max(1, num_tokens // divide_by)
