"""The SDK against a real gRPC server that answers from a script."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider

from edgeweave import Client
from edgeweave.client import TokenDelta, Usage
from edgeweave.client.mesh_state import SessionState
from edgeweave.errors import (
    DeadlineError,
    InvalidRequestError,
    ProtocolError,
    SessionLostError,
    UnavailableError,
)
from edgeweave.interleave.nouns import FinishReason, PlanKind, Sampling
from edgeweave.text import TextModel
from edgeweave.v1 import edge_pb2, scheduler_pb2
from fakes.scheduler import READY, FakeScheduler, serve
from fakes.text_model import write_model_folder


def fives(num_tokens: int = 3) -> FakeScheduler:
    return FakeScheduler(script=lambda _: tuple(range(5, 5 + num_tokens)))


async def test_tokens_come_with_their_index() -> None:
    """Each delta has the absolute index of its first token; the last has finish and usage."""
    async with serve(fives()) as fake, Client(fake.target) as client:
        fake.tokens_per_message = 2
        deltas = [delta async for delta in client.generate([1, 2], max_tokens=8)]
    assert deltas == [
        TokenDelta(0, (5, 6)),
        TokenDelta(2, (7,), FinishReason.LENGTH, Usage(2, 3)),
    ]


async def test_what_the_scheduler_is_asked() -> None:
    """Every argument has its field, and no argument that was left out has one."""
    sampling = Sampling(temperature=0.5, top_k=4, top_p=0.25, seed=2**64 - 1)
    async with serve(fives()) as fake, Client(fake.target) as client:
        full = client.generate(
            [1, 2],
            max_tokens=8,
            sampling=sampling,
            stop_token_ids={9, 8},
            output_token_ids=[5],
            request_id="r",
            deadline_s=30,
        )
        assert [delta.first_index async for delta in full] == [1, 2]
        await anext(client.generate([1], max_tokens=1))
    first, second = fake.requests
    assert first == scheduler_pb2.GenerateRequest(
        request_id="r",
        prompt_token_ids=[1, 2],
        output_token_ids=[5],
        sampling=edge_pb2.Sampling(temperature=0.5, top_k=4, top_p=0.25, seed=2**64 - 1),
        max_tokens=8,
        stop_token_ids=[8, 9],
        deadline_ms=30_000,
    )
    assert (second.request_id, second.deadline_ms, list(second.stop_token_ids)) == ("", 0, [])


async def test_closing_aborts() -> None:
    """A stream that is left early aborts its request, while the scheduler still works on it."""
    fake = FakeScheduler(script=lambda _: (5, 6, 7), hold_at=1)
    async with serve(fake), Client(fake.target) as client:
        async with aclosing(client.generate([1], max_tokens=8)) as deltas:
            await anext(deltas)
            await fake.holding.wait()
        async with asyncio.timeout(5):
            await fake.aborted.wait()


async def test_cancelling_aborts() -> None:
    """A task that is cancelled while it waits for tokens aborts its request."""
    fake = FakeScheduler(script=lambda _: (5,), hold_at=0)
    async with serve(fake), Client(fake.target) as client:
        task = asyncio.ensure_future(anext(client.generate([1], max_tokens=8)))
        await fake.holding.wait()
        task.cancel()
        async with asyncio.timeout(5):
            await fake.aborted.wait()


async def test_errors_keep_their_class() -> None:
    """What the scheduler raises arrives as the same class with the same text, after the tokens before it."""
    fake = FakeScheduler(script=lambda _: (5, 6), error=SessionLostError("decode lane broke"), fail_at=1)
    async with serve(fake), Client(fake.target) as client:
        deltas = client.generate([1], max_tokens=8)
        assert (await anext(deltas)).token_ids == (5,)
        with pytest.raises(SessionLostError, match="decode lane broke"):
            await anext(deltas)


async def test_nobody_answers() -> None:
    """Where no scheduler listens, the error says where and what to check."""
    async with serve(fives()) as fake:
        target = fake.target
    async with Client(target) as client:
        with pytest.raises(UnavailableError, match=rf"scheduler at {target} does not answer.*is it running\?"):
            await anext(client.generate([1], max_tokens=1))


async def test_deadline() -> None:
    """A request that takes longer than its deadline ends with DeadlineError, whatever the scheduler does."""
    fake = FakeScheduler(script=lambda _: (5,), hold_at=0)
    async with serve(fake), Client(fake.target) as client:
        with pytest.raises(DeadlineError):
            await anext(client.generate([1], max_tokens=1, deadline_s=0.05))


@pytest.mark.parametrize("token_id", [-1, 2**32])
async def test_values_that_no_message_can_hold(token_id: int) -> None:
    """A number that its field cannot hold is refused at once, before any call."""
    async with Client("127.0.0.1:1") as client:
        with pytest.raises(InvalidRequestError, match="cannot be sent"):
            client.generate([token_id], max_tokens=1)


async def test_gap_in_the_output() -> None:
    """A repeated or missing token is an error, never passed on."""
    fake = FakeScheduler(script=lambda _: (5, 6), tokens_per_message=1)
    async with serve(fake), Client(fake.target) as client:
        fake.first_index_shift = 1
        with pytest.raises(ProtocolError, match="sent output 1 where 0 is next"):
            await anext(client.generate([1], max_tokens=2))


async def test_stream_without_an_end() -> None:
    """A stream that ends without a finish reason is an error: tokens may be missing."""
    fake = FakeScheduler(script=lambda _: (5,), omit_finish=True)
    async with serve(fake), Client(fake.target) as client:
        with pytest.raises(ProtocolError, match="without a finish reason"):
            _ = [delta async for delta in client.generate([1], max_tokens=1)]


async def test_trace_context_goes_along() -> None:
    """The scheduler gets the W3C trace context of the caller, also if the stream is read outside the span."""
    tracer = TracerProvider().get_tracer("test")
    async with serve(fives()) as fake, Client(fake.target) as client:
        with tracer.start_as_current_span("request") as span:
            deltas = client.generate([1], max_tokens=1)
        await anext(deltas)
    assert f"{span.get_span_context().trace_id:032x}" in fake.metadata[0]["traceparent"]
    assert "baggage" not in fake.metadata[0]


async def test_set_plan() -> None:
    """A plan is asked for by kind; what is left out is left to the scheduler."""
    async with serve(fives()) as fake, Client(fake.target) as client:
        plan = await client.set_plan(PlanKind.TWO_P_ONE_D, max_prefills=3)
        assert (plan.plan, plan.kind) == (2, PlanKind.TWO_P_ONE_D)
        assert (fake.plans[0].max_prefills, fake.plans[0].max_steps, fake.plans[0].num_segments) == (3, 0, 0)
        fake.error = InvalidRequestError("no such plan")
        with pytest.raises(InvalidRequestError, match="no such plan"):
            await client.set_plan(PlanKind.SERIAL)


async def test_watch_mesh() -> None:
    """Each answer is one state; what is absent is None."""
    async with serve(fives()) as fake, Client(fake.target) as client, aclosing(client.watch_mesh()) as states:
        ready = await anext(states)
        fake.show(scheduler_pb2.WatchMeshResponse(state=scheduler_pb2.SESSION_STATE_DOWN, reason="no cloud"))
        down = await anext(states)
    assert (ready.state, ready.session, ready.reason) == (SessionState.READY, READY.session, None)
    assert ready.edge is not None
    assert (ready.edge.busy_us, ready.cloud, ready.max_seq_len) == (5, None, None)
    assert (down.state, down.reason, down.plan) == (SessionState.DOWN, "no cloud", None)


async def test_client_that_is_not_open() -> None:
    """A client outside its context manager says so."""
    with pytest.raises(RuntimeError, match="async with"):
        await Client("127.0.0.1:1").set_plan(PlanKind.SERIAL)


async def test_text(tmp_path: Path) -> None:
    """With a model folder the client speaks text: chat and completion, up to a stop string."""
    folder = write_model_folder(tmp_path)
    model = TextModel.load(folder)
    fake = FakeScheduler(script=lambda _: (*model.encode("Paris. Yes"), 2))
    messages = [{"role": "user", "content": "The capital of France?"}]
    async with serve(fake), Client(fake.target) as client:
        text = client.with_text(folder)
        chat = [delta async for delta in text.chat(messages, max_tokens=50)]
        complete = [delta async for delta in text.complete("The capital is", max_tokens=50, stop=[". Y"])]
    assert "".join(delta.text for delta in chat) == "Paris. Yes"
    assert chat[-1].finish is FinishReason.STOP
    assert chat[-1].usage == Usage(len(model.encode_chat(messages)), len(model.encode("Paris. Yes")) + 1)
    assert "".join(delta.text for delta in complete) == "Paris"
    assert complete[-1].finish is FinishReason.STOP
    assert complete[-1].usage is not None
    assert complete[-1].usage.num_output_tokens < len(model.encode("Paris. Yes"))


async def test_stop_string_ends_the_request(tmp_path: Path) -> None:
    """The request is aborted before the last text is given: nothing is computed behind a stop string."""
    model = TextModel.load(write_model_folder(tmp_path))
    output = model.encode("one#two")
    fake = FakeScheduler(script=lambda _: output, hold_at=len(output) - 1)
    async with serve(fake), Client(fake.target) as client:
        text = client.with_text(tmp_path)
        deltas = text.complete("x", max_tokens=50, stop=["#"])
        async for delta in deltas:
            if delta.finish:
                break
        async with asyncio.timeout(5):
            await fake.aborted.wait()
        await deltas.aclose()
