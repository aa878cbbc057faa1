"""Small loads on a mesh in virtual time whose spans are kept: for tests of traces."""

from dataclasses import replace

from edgeweave.interleave.accounts import Side
from edgeweave.interleave.limits import Limits
from edgeweave.interleave.nouns import Fuse, PlanKind
from edgeweave.interleave.plans import PLAN_NAMES, PlanRequest
from edgeweave.interleave.scheduler_events import Cancel
from edgeweave.tracing.recorder import Recorder
from edgeweave.tracing.site import timeline_context
from edgeweave.tracing.span import Span, SpanContext
from edgeweave.tracing.tracer import Sinks
from fakes.mesh import Config, Mesh
from fakes.timed import TimedMesh
from fakes.trace_text import tree_text

LIMITS = Limits(max_prefill_batch_size=2, max_seq_len=64, max_batch_size=4, chunk_tokens=6)


class TracedMesh:
    """A mesh over a link of 5 ms one way, watched from the begin of its session."""

    def __init__(self, plan: str | PlanRequest, *, limits: Limits = LIMITS) -> None:
        wanted = PlanRequest(PLAN_NAMES[plan], num_segments=2) if isinstance(plan, str) else plan
        config = Config(limits=limits, plan=wanted, piece_tokens=6, frame_rows=6, max_grace_us=20_000)
        self.mesh = Mesh(config)
        self.spans: list[Span] = []
        self.recorder = Recorder(self.mesh.scheduler, Sinks.one(self.spans.append))
        self.mesh.watcher = self.recorder.saw
        self.mesh.lose_session("a session that is watched from its begin")
        self.timed = TimedMesh(self.mesh, report_every_us=10_000)
        self.roots: dict[str, SpanContext] = {}

    def ask(self, request_id: str, num_prompt: int, *, max_tokens: int) -> None:
        """Let a client ask for `max_tokens`."""
        self.roots[request_id] = SpanContext.of(request_id)
        self.recorder.watch(request_id, self.roots[request_id], arrived_us=self.mesh.now_us)
        self.mesh.queue(request_id, tuple(range(1, num_prompt + 1)), max_tokens=max_tokens)

    def finish(self) -> None:
        """Play to the end, and let the session end."""
        self.timed.play()
        self.mesh.lose_session("the end")

    @property
    def text(self) -> str:
        """The traces of all requests, then the timelines of both engines."""
        requests = [tree_text(f"generate {name}", root, self.spans) for name, root in self.roots.items()]
        timelines = [tree_text(f"timeline {side.value}", timeline_context(2, side, 0), self.spans) for side in Side]
        return "\n".join([*requests, *timelines])


def alone() -> TracedMesh:
    """One request, whose prompt is two chunks."""
    traced = TracedMesh("1p1d")
    traced.ask("a", 8, max_tokens=3)
    traced.mesh.poll_scheduler()
    traced.finish()
    return traced


def woven(plan: str) -> TracedMesh:
    """Three requests that come at once."""
    traced = TracedMesh(plan)
    for request_id, num_prompt, max_tokens in (("a", 8, 3), ("b", 4, 3), ("c", 5, 2)):
        traced.ask(request_id, num_prompt, max_tokens=max_tokens)
    traced.mesh.poll_scheduler()
    traced.finish()
    return traced


def fused() -> TracedMesh:
    """A short prompt before a long one: steps of the first ride in chunks of the other, from the start or later."""
    plan = PlanRequest(PlanKind.TWO_P_ONE_D, max_prefills=3, num_segments=2, fuse=Fuse.ALWAYS)
    traced = TracedMesh(plan, limits=replace(LIMITS, max_prefill_batch_size=1))
    for request_id, num_prompt, max_tokens in (("a", 4, 4), ("b", 30, 2)):
        traced.ask(request_id, num_prompt, max_tokens=max_tokens)
    traced.mesh.poll_scheduler()
    traced.finish()
    return traced


def cancelled() -> TracedMesh:
    """A client leaves while its request is decoded."""
    traced = TracedMesh("1p1d")
    traced.ask("a", 8, max_tokens=9)
    traced.mesh.poll_scheduler()
    traced.timed.play_until(40_000)
    traced.mesh.tell(Cancel("a"))
    traced.recorder.forget("a")
    traced.finish()
    return traced


def lost() -> TracedMesh:
    """The link breaks while a step is away; engines do not get to tell what they did last."""
    traced = TracedMesh("1p1d")
    traced.ask("a", 8, max_tokens=9)
    traced.mesh.poll_scheduler()
    traced.timed.play_until(46_000)
    traced.mesh.lose_session("the decode lane broke")
    return traced
