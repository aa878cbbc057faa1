"""Takes decode steps of our engine apart: `python -m contest.profile FOLDER`, with the options of `edge_model`.

Steps without a profiler alternate with steps under it, in blocks; the block whose undisturbed steps took the median
time is told.
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile, record_function

from contest.breakdown import ATTENTION_LABEL, COMPILED_LABEL, PRODUCT_LABEL, Breakdown, OpCall, breakdown
from contest.edge_model import DecodingBatch, EdgePlayer, loaded, parser, settings_of
from contest.turns import Prompts, Streams
from edgeweave.model import EdgeModel, single_rows
from edgeweave.model.cache import LayerKv
from edgeweave.model.registers import WIDTH

NUM_BLOCKS = 5
STEPS = 8
NUM_SHOWN_OPS = 15


def main(argv: Sequence[str]) -> None:
    """Take turns until there are no more."""
    streams = Streams.taken()
    given = parser().parse_args(argv)
    records = Records()
    records.watch()
    model = loaded(given)
    streams.serve(
        lambda request: _figures(_profiled(model, request["prompts"], records, piece_tokens=given.piece_tokens)),
        settings=settings_of(given),
    )


class Records:
    """Records of what is no operator of torch, written while they are on."""

    def __init__(self) -> None:
        self.is_on = False

    def watch(self) -> None:
        """Watch products in panels, what a layer does with its keys and values, and the compiled attention within."""
        if WIDTH:
            from edgeweave.model import panel_product  # noqa: PLC0415  only where there are panels

            panel_product.multiply = self._watched(panel_product.multiply, PRODUCT_LABEL)
            panel_product.lay_out = self._watched(panel_product.lay_out, PRODUCT_LABEL)
        calls = {name: call for name, call in vars(LayerKv).items() if name.startswith("attend")}
        for name, call in calls.items():
            setattr(LayerKv, name, self._watched(call, ATTENTION_LABEL))
        single_rows.attend_singles = self._watched(single_rows.attend_singles, COMPILED_LABEL)

    def _watched(self, call: Callable[..., Any], label: str) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            if not self.is_on:
                return call(*args, **kwargs)
            with record_function(label):
                return call(*args, **kwargs)

        return watched


def _profiled(model: EdgeModel, prompts: Prompts, records: Records, *, piece_tokens: int) -> Breakdown:
    token_ids = EdgePlayer(model, piece_tokens=piece_tokens).prefill(prompts)
    batch = DecodingBatch(model, [len(prompt) for prompt in prompts], token_ids)
    _block(batch, records)  # the first one warms up model and profiler
    blocks = sorted((_block(batch, records) for _ in range(NUM_BLOCKS)), key=lambda block: block.step_us)
    model.free(range(len(prompts)))
    return blocks[NUM_BLOCKS // 2]


def _block(batch: DecodingBatch, records: Records) -> Breakdown:
    """Return where the time of some steps goes: between as many before and after, without the profiler."""
    before_us = _step_us(batch)
    records.is_on = True
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        profiled_step_us = _step_us(batch)
    records.is_on = False
    step_us = (before_us + _step_us(batch)) / 2
    calls = [_call_of(event) for event in profiler.events() or []]
    return breakdown(calls, step_us=step_us, profiled_step_us=profiled_step_us, num_steps=STEPS)


def _step_us(batch: DecodingBatch) -> float:
    begin_s = time.perf_counter()
    for _ in range(STEPS):
        batch.step()
    return (time.perf_counter() - begin_s) * 1e6 / STEPS


def _call_of(event: FunctionEvent) -> OpCall:
    path = []
    caller: FunctionEvent | None = event
    while caller is not None:
        path.append(caller.name)
        caller = caller.cpu_parent
    return OpCall(tuple(path), event.self_cpu_time_total, len(event.cpu_children))


def _figures(found: Breakdown) -> Mapping[str, Any]:
    return {
        "step_us": found.step_us,
        "record_us": found.record_us,
        "parts_us": {part.value: spent_us for part, spent_us in found.parts_us.items()},
        "ops": [
            {"name": op.name, "part": op.part.value, "num_calls": op.num_calls, "self_us": op.self_us}
            for op in found.ops[:NUM_SHOWN_OPS]
        ],
    }


if __name__ == "__main__":
    main(sys.argv[1:])
