"""A scheduler's core that is driven by hand and watched by a meter; units that it hears of; a page of metrics, read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from edgeweave.interleave.nouns import Stage, UnitRan
from edgeweave.interleave.scheduler_events import SchedulerEvent
from edgeweave.metrics import SchedulerMeter
from fakes.driven import DrivenScheduler


@dataclass(slots=True)
class MeteredScheduler(DrivenScheduler):
    """One core and its meter."""

    meter: SchedulerMeter = field(init=False)

    def __post_init__(self) -> None:
        """Let the meter watch the core."""
        DrivenScheduler.__post_init__(self)
        self.meter = SchedulerMeter(self.core)

    def tell(self, event: SchedulerEvent) -> "MeteredScheduler":
        """Tell the core something."""
        DrivenScheduler.tell(self, event)
        self.meter.saw(event, self.effects, now_us=self.now_us)
        return self

    def poll(self, *, now_us: int) -> "MeteredScheduler":
        """Let time pass."""
        DrivenScheduler.poll(self, now_us=now_us)
        self.meter.saw(None, self.effects, now_us=now_us)
        return self


def ran(stage: Stage, begin_us: int, end_us: int, *, num_rows: int = 1, num_skipped: int = 0) -> UnitRan:
    """Return a unit of the first step that ran in this time."""
    return UnitRan(
        stage,
        1,
        4,
        begin_us,
        end_us,
        prefill_ready=False,
        decode_ready=False,
        num_rows=num_rows,
        num_tokens=num_rows,
        plan=1,
        step=1,
        num_skipped=num_skipped,
    )


Sample = tuple[str, frozenset[tuple[str, str]]]


class Scraped:
    """The samples of a page, by name and labels."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.samples: dict[Sample, float] = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    @classmethod
    def of(cls, registry: CollectorRegistry) -> "Scraped":
        """Return what a registry tells now."""
        return cls(generate_latest(registry).decode())

    def value(self, name: str, **labels: str) -> float:
        """Return one sample."""
        return self.samples[name, frozenset(labels.items())]

    def sum(self, name: str, **labels: str) -> float:
        """Return the sum over all samples of a name that have these labels."""
        wanted = set(labels.items())
        return sum(value for (each, given), value in self.samples.items() if each == name and wanted <= given)

    def labels_of(self, name: str) -> list[Mapping[str, str]]:
        """Return the labels of each sample of a name."""
        return [dict(given) for each, given in self.samples if each == name]
