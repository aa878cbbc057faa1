"""What holds for the spans of every schedule of the cores."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest

from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import Chunk, ErrorCode, Row, Segment, Stage, Timeline, UnitFailed, UnitRan
from edgeweave.telemetry import Attribute, SpanName
from edgeweave.tracing.recorder import Recorder
from edgeweave.tracing.site import NUM_REMEMBERED, ORIGINS, Site
from edgeweave.tracing.span import Span, SpanContext
from edgeweave.tracing.step_spans import LATER_STEPS, STEPS_IN_FULL, is_traced
from edgeweave.tracing.tracer import SessionTracer, Sinks, TracedRequest
from edgeweave.tracing.windows import WINDOW_US
from fakes.mesh import Config
from fakes.schedules import CALM, FUSING, ROUGH, Faults, Schedule

SEEDS = range(60)
BASES = [pytest.param(Config(), id="apart"), pytest.param(FUSING, id="fusing")]
IN_TIMELINE = {SpanName.HEAD, SpanName.SEGMENT, SpanName.TAIL, SpanName.BODY, SpanName.TURNAROUND}


class TracedSchedule(Schedule):
    """A schedule whose requests are all watched from the begin of a session."""

    def __init__(self, seed: int, *, faults: Faults, base: Config | None = None) -> None:
        super().__init__(seed, faults=faults, base=base or Config())
        self.spans: list[Span] = []
        self.recorder = Recorder(self.mesh.scheduler, Sinks.one(self.spans.append))
        self.mesh.watcher = self.recorder.saw
        self.mesh.lose_session("a session that is watched from its begin")

    def ask(self) -> None:
        name = f"r{len(self.asked)}"
        self.recorder.watch(name, SpanContext.of(name), arrived_us=self.mesh.now_us)
        super().ask()

    def traced(self) -> list[Span]:
        """Play to the end and return all spans."""
        self.play()
        self.mesh.watcher = lambda *_args, **_keywords: None
        self.recorder.close()
        return self.spans


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("faults", [CALM, ROUGH], ids=["calm", "rough"])
def test_no_child_is_outside_its_parent_and_no_span_comes_twice(faults: Faults, base: Config) -> None:
    """Whatever is delivered when: times go forward, chunks and steps hold what is inside them."""
    for seed in SEEDS:
        spans = TracedSchedule(seed, faults=faults, base=base).traced()
        by_context = {span.context: span for span in spans}
        assert len(by_context) == len(spans), f"seed {seed}"
        for span in spans:
            assert span.begin_us <= span.end_us, f"seed {seed}: {span}"
            parent = by_context.get(span.parent) if span.parent is not None else None
            if parent is not None and parent.name in {SpanName.CHUNK, SpanName.STEP}:
                assert parent.begin_us <= span.begin_us, f"seed {seed}: {span}"
                assert span.end_us <= parent.end_us, f"seed {seed}: {span}"


@pytest.mark.parametrize("base", BASES)
def test_every_chunk_has_all_layers_of_the_body_once_and_every_step_its_parts(base: Config) -> None:
    """Without aborts nothing is left out: segments tile the body, and a step has its head, body, tail and two hops.

    A step that rode in a chunk has its body in one part or in two.
    """
    for seed in SEEDS:
        schedule = TracedSchedule(seed, faults=CALM, base=base)
        spans, body = schedule.traced(), schedule.mesh.session.body
        if schedule.mesh.scheduler.num_preemptions:
            continue  # a chunk whose sequence was preempted is dropped where it is
        parts: dict[SpanContext, list[Span]] = {}
        for span in spans:
            if span.parent is not None:
                parts.setdefault(span.parent, []).append(span)
        for chunk in [span for span in spans if span.name == SpanName.CHUNK]:
            segments = [part for part in parts[chunk.context] if part.name == SpanName.SEGMENT]
            assert layers_of(segments, body) == list(range(body.start, body.stop)), f"seed {seed}"
        for step in [span for span in spans if span.name == SpanName.STEP]:
            names = Counter(part.name for part in parts[step.context])
            expected = {SpanName.HEAD: 1, SpanName.TAIL: 1, SpanName.SAMPLING: 1}
            bodies = [part for part in parts[step.context] if part.name == SpanName.BODY]
            if body.num_layers:
                expected |= {SpanName.BODY: len(bodies), SpanName.HOP: 2}
            assert names == expected, f"seed {seed}"
            assert layers_of(bodies, body) == list(range(body.start, body.stop)), f"seed {seed}"
            assert len(bodies) <= (2 if base is FUSING else 1), f"seed {seed}"


def layers_of(parts: Iterable[Span], body: Segment) -> list[int]:
    """Return the layers of these parts, in order of the parts; one that names none is the whole body."""
    spans = [part.attributes for part in parts]
    bounds = [
        (each.get(Attribute.START_LAYER, body.start), each.get(Attribute.STOP_LAYER, body.stop)) for each in spans
    ]
    return [layer for start, stop in bounds for layer in range(int(start), int(stop))]


@pytest.mark.parametrize("base", BASES)
def test_the_timelines_add_up_to_the_accounts(base: Config) -> None:
    """From spans alone: what ran, and the bubbles of each cause, are as long as the engines' own sums say."""
    for seed in SEEDS:
        schedule = TracedSchedule(seed, faults=CALM, base=base)
        spans, totals = schedule.traced(), schedule.mesh.session.totals
        for side in Side:
            roots = [s for s in spans if s.name == f"{SpanName.TIMELINE} {side.value}" and s.origin is ORIGINS[side]]
            mine = [span for span in spans if span.parent in {root.context for root in roots}]
            busy_us = sum(span.length_us for span in mine if span.name in IN_TIMELINE)
            assert busy_us == totals.engines[side].busy_us, f"seed {seed}"
            bubbles = Counter[str]()
            for span in mine:
                if span.name == SpanName.BUBBLE:
                    bubbles[str(span.attributes[Attribute.CAUSE])] += span.length_us
            told = {cause.name.lower(): us for cause, us in totals.engines[side].bubbles_us.items() if us}
            assert {cause: us for cause, us in bubbles.items() if us} == told, f"seed {seed}"


def test_a_long_generation_makes_few_spans_of_steps() -> None:
    """The first steps have spans, and then one in thirty-two."""
    assert sum(is_traced(index) for index in range(10_000)) == STEPS_IN_FULL + 10_000 // LATER_STEPS
    assert all(is_traced(index) for index in range(STEPS_IN_FULL))


def ran_unit(stage: Stage, *, step: int, next_step: int | None = None) -> UnitRan:
    """A short unit of one row."""
    return UnitRan(
        stage,
        1,
        3,
        0,
        1,
        prefill_ready=False,
        decode_ready=True,
        num_rows=1,
        num_tokens=1,
        plan=1,
        step=step,
        next_step=next_step,
    )


@pytest.mark.parametrize("stage", [Stage.SEGMENT, Stage.STEP])
def test_a_unit_that_failed_marks_its_chunk_or_step(stage: Stage) -> None:
    """In the trace of each request that failed with it: which stage, and why."""
    told: list[Span] = []
    tracer = SessionTracer(Site(1, 0), Sinks.one(told.append))
    root = SpanContext.of("request")
    tracer.open(7, TracedRequest(root, 0))
    tracer.issue(Chunk(1, (Row(7, 0, 3),), (Segment(1, 3),), plan=1, deadline_ms=1000), now_us=5)
    is_step = stage is Stage.STEP
    if is_step:
        launch = ran_unit(Stage.TURNAROUND, step=1, next_step=1)
        tracer.report(Side.EDGE, Timeline((launch,), (), 0, 20), now_us=20)
    failed = UnitFailed((7,), ErrorCode.OUT_OF_MEMORY, stage, chunk=None if is_step else 1, step=1 if is_step else None)
    tracer.failed(failed, now_us=30)
    tracer.end()
    whole = next(span for span in told if span.name == (SpanName.STEP if is_step else SpanName.CHUNK))
    assert whole.parent == root
    assert whole.error == f"{stage.name.lower()} failed: out_of_memory"


def test_steps_that_are_never_answered_are_forgotten() -> None:
    """A step that failed in the cloud has units and no answer; a long session must not keep what is known of it."""
    tracer = SessionTracer(Site(1, 0), Sinks.one(lambda _: None))
    for number in range(1, NUM_REMEMBERED + 100):
        ran = ran_unit(Stage.STEP, step=number)
        tracer.report(Side.CLOUD, Timeline((ran,), (), 0, 1), now_us=1)
    assert len(tracer._steps) == NUM_REMEMBERED  # noqa: SLF001 - what is kept is nobody else's matter


def test_a_unit_keeps_its_name_when_its_clock_is_known_better() -> None:
    """A request that is told of later links to the unit in the window in which the timeline told it."""
    site = Site(1, 0)
    site.clocks.take_report(Side.EDGE, clock_us=0, now_us=100)
    ran = replace(ran_unit(Stage.TURNAROUND, step=1), begin_us=WINDOW_US - 50, end_us=WINDOW_US)
    before = site.unit(Side.EDGE, ran)
    site.clocks.take_report(Side.EDGE, clock_us=200, now_us=210)
    assert site.at(Side.EDGE, ran.begin_us) < WINDOW_US
    assert site.unit(Side.EDGE, ran) == before
