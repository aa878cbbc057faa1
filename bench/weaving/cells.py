"""The cells of a table: what each variant gave at each distance, beside one place and beside its bound.

Knows which runs are compared. Does not know how a table looks.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean, median

from edgeweave.interleave.nouns import BubbleCause
from edgeweave.sim.bounds import Work
from weaving.answers import Latency, good_share, tokens_per_s
from weaving.bounds import PlaceTimes, decode_return_us, fuses, one_place_times, place_bound, place_work
from weaving.loads import BenchLoad
from weaving.places import Place
from weaving.ratios import Ratio, paired
from weaving.run import Run
from weaving.steady import steady_tokens_per_s, steady_window
from weaving.use import cause_words

SERIAL = "serial"


@dataclass(frozen=True, slots=True)
class Loss:
    """The largest part of a run's open time that a perfect order would not have spent, and what it went to."""

    cause: str
    share: float


@dataclass(frozen=True, slots=True)
class Compared:
    """One variant beside a plan of one place: over the whole run and in the steady state, and the most it could be.

    An open load has no steady state and no bound, but `goodput`.
    """

    ratio: Ratio | None
    steady: Ratio | None = None
    bound: float | None = None
    goodput: Ratio | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """One variant at one place. Throughputs and latencies are medians over its runs.

    `slowdown` is the worst of its runs. `best` compares with the best plan of one place, `apart` with the best of those
    whose rows run apart from prefill, if that is another; `over_serial` with plan serial at the same place. What does
    not apply is `None`, such as all of these in one place.
    """

    place: Place
    variant: str
    num_runs: int
    tokens_per_s: float
    latency: Latency
    busy_share: float
    bubbles: Mapping[BubbleCause, float]
    cpu: Mapping[str, float]
    slowdown: float
    best: Compared | None = None
    apart: Compared | None = None
    decode_return_ms: float | None = None
    lane_gbit: float | None = None
    over_serial: Ratio | None = None
    loss: Loss | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """All cells of one load on one kind of engines.

    `baseline` names the best variant of one place, `baseline_apart` the best of those whose rows run apart.
    """

    engines: str
    load: BenchLoad
    baseline: str
    baseline_apart: str
    one_place: tuple[Cell, ...]
    split: tuple[Cell, ...]


def best_of(trials: Sequence[Run]) -> str:
    """Return the variant of one place with the highest throughput over the whole run."""
    return max(trials, key=lambda run: tokens_per_s(run.answers)).key.variant


def best_apart_of(trials: Sequence[Run]) -> str:
    """Return the best of the variants of one place under which no row rode in prefill."""
    return best_of([run for run in trials if not fuses(run)] or trials)


def table_of(load: BenchLoad, *, trials: Sequence[Run], runs: Sequence[Run]) -> Table:
    """Return the table of all runs of one load. `trials` have one run of each variant of one place.

    Runs of one place among `runs` are those of the best of them, and of the best whose rows run apart; each round of
    the split is compared with its round. Trials of an open load came all at once, so they say which is best and are not
    shown.
    """
    baseline, baseline_apart = best_of(trials), best_apart_of(trials)
    best, apart = (_PlanOfOnePlace.of(load, name, trials, runs) for name in (baseline, baseline_apart))
    shown = {baseline, baseline_apart}
    others = [] if load.is_open else [_plain_cell([run]) for run in trials if run.key.variant not in shown]
    comparison = _Comparison(load, best, apart if baseline_apart != baseline else None)
    groups = _grouped(run for run in runs if run.key.place.is_split)
    split = [comparison.cell(group, runs) for group in sorted(groups, key=_place_order)]
    one_place = [_plain_cell(plan.runs) for plan in (best, apart)] if comparison.apart else [_plain_cell(best.runs)]
    return Table(runs[0].key.engines, load, baseline, baseline_apart, (*one_place, *others), tuple(split))


@dataclass(frozen=True, slots=True)
class _PlanOfOnePlace:
    """A plan that the split is compared with: its runs, and what the load takes under it."""

    load: BenchLoad
    runs: Sequence[Run]
    times: PlaceTimes

    @classmethod
    def of(cls, load: BenchLoad, name: str, trials: Sequence[Run], runs: Sequence[Run]) -> "_PlanOfOnePlace":
        base = [run for run in runs if not run.key.place.is_split and run.key.variant == name]
        return cls(load, base, one_place_times(base, trials))

    def compared(self, group: Sequence[Run], here: Sequence[Run]) -> Compared:
        """Compare runs of one variant; `here` are those of all variants at its place."""
        ratio = _compared(group, self.runs, _throughput)
        if self.load.is_open:
            return Compared(ratio, goodput=_compared(group, self.runs, self._good_share))
        return Compared(ratio, _compared(group, self.runs, self._steady), place_bound(self.load, self.times, here))

    def _steady(self, run: Run) -> float | None:
        window = steady_window(run.answers, self.load.steady)
        return None if window is None else steady_tokens_per_s(run.answers, window, self.times.costs(self.load))

    def _good_share(self, run: Run) -> float:
        return good_share(run.answers, median_latency(self.runs))


@dataclass(frozen=True, slots=True)
class _Comparison:
    """What the runs of the split are compared with."""

    load: BenchLoad
    best: _PlanOfOnePlace
    apart: _PlanOfOnePlace | None

    def cell(self, group: Sequence[Run], runs: Sequence[Run]) -> Cell:
        plain = _plain_cell(group)
        here = [run for run in runs if run.key.place == plain.place]
        serial = [run for run in here if run.key.variant == SERIAL] if plain.variant != SERIAL else []
        is_open = self.load.is_open
        return replace(
            plain,
            best=self.best.compared(group, here),
            apart=self.apart.compared(group, here) if self.apart is not None else None,
            decode_return_ms=decode_return_us(self.load, here) / 1000 if self.load.num_later_tokens else None,
            lane_gbit=mean(run.use.lane_bytes_per_s for run in here) * 8 / 1e9,
            over_serial=_compared(group, serial, _throughput),
            loss=None if is_open else self._loss(group, place_work(self.load, self.best.times, here)),
        )

    @staticmethod
    def _loss(group: Sequence[Run], work: Work) -> Loss | None:
        """Return what cost most beside the work that there is and the bubbles that nothing could fill."""
        open_us = mean(run.use.body.open_us for run in group)
        lost_us = {
            cause_words(cause): mean(run.use.body.bubbles_us.get(cause, 0) for run in group) for cause in BubbleCause
        }
        lost_us[cause_words(BubbleCause.AWAIT_DECODE_HIDDEN)] -= work.least_bubbles_us
        lost_us["work of thin batches and short segments"] = mean(run.use.body.busy_us for run in group) - work.body_us
        cause = max(lost_us, key=lambda name: lost_us[name])
        return Loss(cause, lost_us[cause] / open_us) if lost_us[cause] > 0 else None


def median_latency(runs: Sequence[Run]) -> Latency:
    """Return the median over runs of each quantile."""
    each = [Latency.of(run.answers) for run in runs]
    p50 = [latency.tpot_p50_ms for latency in each if latency.tpot_p50_ms is not None]
    p90 = [latency.tpot_p90_ms for latency in each if latency.tpot_p90_ms is not None]
    return Latency(
        median(latency.ttft_p50_ms for latency in each),
        median(latency.ttft_p90_ms for latency in each),
        median(p50) if p50 else None,
        median(p90) if p90 else None,
    )


def _plain_cell(runs: Sequence[Run]) -> Cell:
    """Return what runs of one variant at one place say by themselves."""
    key, open_us = runs[0].key, sum(run.use.body.open_us for run in runs)
    causes = {cause for run in runs for cause in run.use.body.bubbles_us}
    return Cell(
        place=key.place,
        variant=key.variant,
        num_runs=len(runs),
        tokens_per_s=median(tokens_per_s(run.answers) for run in runs),
        latency=median_latency(runs),
        busy_share=sum(run.use.body.busy_us for run in runs) / open_us,
        bubbles={c: sum(run.use.body.bubbles_us.get(c, 0) for run in runs) / open_us for c in sorted(causes)},
        cpu={name: median(run.cpu[name] for run in runs) for name in runs[0].cpu},
        slowdown=max(run.slowdown for run in runs),
    )


def _place_order(group: Sequence[Run]) -> tuple[bool, float]:
    """Sort by distance, TLS last; plans of one place stay in the order in which they came."""
    place = group[0].key.place
    return place.has_tls, place.distance_km or 0.0


def _grouped(runs: Iterable[Run]) -> list[list[Run]]:
    """Return the runs of each cell together, in the order in which the cells came."""
    groups: dict[tuple[Place, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.key.place, run.key.variant), []).append(run)
    return list(groups.values())


def _throughput(run: Run) -> float:
    return tokens_per_s(run.answers)


def _compared(ours: Sequence[Run], theirs: Sequence[Run], measure: Callable[[Run], float | None]) -> Ratio | None:
    return paired(_by_round(ours, measure), _by_round(theirs, measure))


def _by_round(runs: Sequence[Run], measure: Callable[[Run], float | None]) -> dict[int, float]:
    measured = {run.key.round: measure(run) for run in runs}
    return {number: value for number, value in measured.items() if value is not None}
