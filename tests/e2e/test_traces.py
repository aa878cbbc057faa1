"""What a real collector gets of real requests over a link of 1,000 km."""

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from openai import AsyncOpenAI

from edgeweave.child import child_command
from edgeweave.interleave.nouns import PlanKind
from edgeweave.telemetry import Attribute, SpanName
from edgeweave.tracing.step_spans import STEPS_IN_FULL
from fakes.collector import Collected, Collector, collector
from fakes.processes import ProcessMesh
from weaving.use import state_at_rest

pytestmark = pytest.mark.asyncio(loop_scope="session")

ONE_WAY_MS = 4.9
NUM_SEGMENTS = 2
BODY = (1, 5)
"""Layers of the cloud: four of the six of the tiny model."""
MAX_TOKENS = 1 + STEPS_IN_FULL
TOLERANCE = 0.1


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def traced(mesh: ProcessMesh, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Collector]:
    """What was collected of one chat request under plan `serial`, after scheduler and gateway have ended."""
    async with collector() as collected:
        exported: dict[str, object] = {"otlp_endpoint": collected.endpoint}
        parts: dict[str, dict[str, object]] = {
            "link": {"delay_ms": ONE_WAY_MS},
            "scheduler": exported,
            "gateway": exported,
        }
        async with mesh.replaced(**parts):
            await mesh.serving_http()
            await mesh.client.set_plan(PlanKind.SERIAL, num_segments=NUM_SEGMENTS)
            async with AsyncOpenAI(base_url=f"{mesh.url}/v1", api_key="unused", max_retries=0) as client:
                model = (await client.models.list()).data[0].id
                await client.chat.completions.create(
                    model=model,
                    messages=[{"role": "user", "content": "one two three " * 60}],
                    max_tokens=MAX_TOKENS,
                    temperature=0.0,
                )
            await state_at_rest(mesh.client)  # so that both engines have told all that they did
            collected.exported = await exported_by_command(mesh, tmp_path_factory.mktemp("trace") / "trace.json")
        await mesh.serving_http()  # a gateway that has just begun does not end well yet
        yield collected


async def exported_by_command(mesh: ProcessMesh, file: Path) -> dict[str, Any]:
    """Return what `edgeweave trace export` writes."""
    words = ("trace", "export", str(file), "--format", "jaeger", "--scheduler", mesh.scheduler_address)
    command = child_command("edgeweave.cli", *words)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0
    content: dict[str, Any] = json.loads(await asyncio.to_thread(file.read_text))
    assert output.decode() == f"{sum(len(trace['spans']) for trace in content['data'])} spans in {file}\n"
    return content


def only(spans: list[Collected]) -> Collected:
    """Return the one span that there is."""
    (span,) = spans
    return span


async def test_one_trace_leads_from_http_to_the_segments_in_the_cloud(traced: Collector) -> None:
    """Chat, generate, queue, chunks, and below each chunk as many segments as it was cut into, which are the body."""
    chat = only([span for span in traced.spans if span.name.startswith("chat ")])
    generate = only(traced.below(chat))
    assert (chat.service, generate.service) == ("edgeweave-gateway", "edgeweave-scheduler")
    assert {span.trace for span in traced.below(generate)} == {chat.trace}
    assert traced.below(generate)[0].name == SpanName.QUEUE
    chunks = [span for span in traced.below(generate) if span.name == SpanName.CHUNK]
    assert chunks
    for chunk in chunks:
        segments = [span for span in traced.below(chunk) if span.name == SpanName.SEGMENT]
        assert {span.service for span in segments} == {"edgeweave-cloud"}
        layers = [(span.attributes[Attribute.START_LAYER], span.attributes[Attribute.STOP_LAYER]) for span in segments]
        assert len(layers) == NUM_SEGMENTS
        assert (layers[0][0], layers[-1][1]) == BODY
        assert all(one[1] == next_[0] for one, next_ in pairwise(layers))
        hops = [span.attributes[Attribute.DIRECTION] for span in traced.below(chunk) if span.name == SpanName.HOP]
        assert hops == ["up", "down"]


async def test_every_step_has_its_parts_and_its_hops_take_what_the_link_takes(traced: Collector) -> None:
    """Times of three clocks fit together: a hop takes one way of the link, and what both ends take."""
    steps = traced.named(SpanName.STEP)
    assert len(steps) == MAX_TOKENS - 1
    order = [SpanName.HEAD, SpanName.HOP, SpanName.BODY, SpanName.HOP, SpanName.TAIL, SpanName.SAMPLING]
    hops_us = []
    for step in steps:
        parts = traced.below(step)
        assert [part.name for part in parts] == order
        hops_us += [part.length_us for part in parts if part.name == SpanName.HOP]
    assert min(hops_us) >= ONE_WAY_MS * 1000 * 0.9


async def test_times_go_forward(traced: Collector) -> None:
    """No span ends before it begins, and no child begins before its parent."""
    by_id = {span.span: span for span in traced.spans}
    assert len(by_id) == len(traced.spans)
    for span in traced.spans:
        assert span.begin_us <= span.end_us, span
        parent = by_id.get(span.parent)
        if parent is not None and parent.trace == span.trace:
            assert parent.begin_us <= span.begin_us, (span, parent)


async def test_timelines_have_a_cause_for_each_bubble_and_lead_to_requests_and_back(traced: Collector) -> None:
    """Whoever looks at an engine finds the request that it worked for, and the other way round."""
    for side in ("edge", "cloud"):
        roots = traced.named(f"{SpanName.TIMELINE} {side}")
        below = [span for root in roots for span in traced.below(root)]
        bubbles = [span for span in below if span.name == SpanName.BUBBLE]
        assert bubbles
        assert all(span.attributes[Attribute.CAUSE] for span in bubbles)
    of_requests = {span.span for span in traced.spans if span.name in {SpanName.CHUNK, SpanName.STEP}}
    bodies = [span for span in traced.named(SpanName.BODY) if span.links]
    in_timeline = [span for span in bodies if set(span.links) <= of_requests]
    in_requests = [span for span in bodies if not set(span.links) & of_requests]
    assert len(in_timeline) == len(in_requests) == MAX_TOKENS - 1
    assert {link for span in in_requests for link in span.links} == {span.span for span in in_timeline}


async def test_the_same_spans_are_exported_as_a_file(traced: Collector) -> None:
    """What the scheduler keeps has the names and ids that the collector got; only the gateway's span is not there.

    Of the timelines the last report is told at the end of the session, after this file was written.
    """
    chat = only([span for span in traced.spans if span.name.startswith("chat ")])
    spans = [span for trace in traced.exported["data"] for span in trace["spans"]]
    of_file = {(span["traceID"], span["spanID"]): span["operationName"] for span in spans}
    collected = {(span.trace.hex(), span.span.hex()): span.name for span in traced.spans}
    of_request = {key: name for key, name in collected.items() if key[0] == chat.trace.hex() and name != chat.name}
    assert of_request.items() <= of_file.items()
    of_engines = {key: name for key, name in of_file.items() if key not in of_request}
    assert of_engines.items() <= collected.items()
    assert {SpanName.SEGMENT, SpanName.BODY, SpanName.TURNAROUND, SpanName.BUBBLE} <= set(of_engines.values())


async def test_in_serial_mode_the_bubbles_are_what_the_link_and_the_other_side_cost(traced: Collector) -> None:
    """From spans alone: between two bodies lie the way down, tail, sampling and head at the edge, and the way up."""
    steps = [traced.below(step) for step in traced.named(SpanName.STEP)]
    first, last = steps[0][2], steps[-1][2]
    cost_us = sum(part.length_us for one, next_ in pairwise(steps) for part in (*one[3:], *next_[:2]))
    roots = traced.named(f"{SpanName.TIMELINE} cloud")
    bubbles = [span for root in roots for span in traced.below(root) if span.name == SpanName.BUBBLE]
    between_us = sum(span.length_us for span in bubbles if first.begin_us < span.begin_us < last.begin_us)
    assert between_us == pytest.approx(cost_us, rel=TOLERANCE)
