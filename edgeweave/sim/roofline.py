"""A profile by arithmetic: a model's sizes over a machine's peaks.

Prefill is bound by compute. A decode step is bound by what it reads, weights once and each row's KV, or by compute
where the batch is large. Profiles are straight lines, so a step's line goes through its time at a full batch.
"""

from dataclasses import dataclass

from edgeweave.errors import InvalidRequestError
from edgeweave.interleave.split import Split
from edgeweave.sim.hardware import Machine
from edgeweave.sim.load import Load
from edgeweave.sim.model_size import ModelSize
from edgeweave.sim.profile import LayerTimes, Profile


@dataclass(frozen=True, slots=True)
class Usage:
    """How a model is used: rows of a full step, and the mean tokens of a prompt and of an output."""

    num_rows: int
    prompt_tokens: float
    output_tokens: float

    @classmethod
    def of(cls, load: Load, *, max_batch_size: int) -> "Usage":
        """Return the usage of a load."""
        num_requests = len(load.arrivals)
        return cls(
            num_rows=min(max_batch_size, num_requests, load.max_open or num_requests),
            prompt_tokens=sum(arrival.num_prompt_tokens for arrival in load.arrivals) / num_requests,
            output_tokens=sum(arrival.num_output_tokens for arrival in load.arrivals) / num_requests,
        )

    @property
    def decode_context(self) -> float:
        """Tokens before a decoded one, on average."""
        return self.prompt_tokens + self.output_tokens / 2

    @property
    def prefill_context(self) -> float:
        """Tokens before one of a prompt, on average."""
        return self.prompt_tokens / 2


def profile_of(model: ModelSize, *, cloud: Machine, edge: Machine, split: Split, usage: Usage) -> Profile:
    """Return the profile of `model` on both machines.

    Raises:
        SplitError: the split leaves the cloud no layer.
        InvalidRequestError: layers and KV of a full batch do not fit into a machine's memory.
    """
    num_body = split.body(model.num_layers).num_layers
    _check_fits(model, cloud, where="cloud", num_layers=num_body, usage=usage)
    num_edge = model.num_layers - num_body
    _check_fits(model, edge, where="edge", num_layers=num_edge, usage=usage, extra_bytes=2 * model.logits_bytes)
    return Profile(
        name=f"{model.name} on {cloud}",
        num_layers=model.num_layers,
        head_layers=split.head_layers,
        tail_layers=split.tail_layers,
        edge=layer_times(model, edge, usage),
        cloud=layer_times(model, cloud, usage),
        logits_row_us=_logits_row_us(model, edge, usage),
        unit_us=cloud.hardware.unit_us,
        token_bytes=model.hidden_size * model.value_bytes,
    )


def layer_times(model: ModelSize, machine: Machine, usage: Usage) -> LayerTimes:
    """Return the times of one layer."""
    fixed_us = model.step_bytes(usage.num_rows) / machine.bytes_per_us
    compute_us = usage.num_rows * model.token_flops(usage.decode_context) / machine.flops_per_us
    kv_row_us = usage.decode_context * model.kv_token_bytes / machine.bytes_per_us
    return LayerTimes(
        step_fixed_us=machine.hardware.layer_us + fixed_us,
        step_row_us=kv_row_us + max(0.0, compute_us - fixed_us) / usage.num_rows,
        prefill_fixed_us=machine.hardware.layer_us,
        prefill_token_us=model.token_flops(usage.prefill_context) / machine.flops_per_us,
    )


def _logits_row_us(model: ModelSize, machine: Machine, usage: Usage) -> float:
    """Return a row's share of the output head, which a full step reads once."""
    compute_us = 2 * model.hidden_size * model.vocab_size / machine.flops_per_us
    return max(compute_us, model.logits_bytes / machine.bytes_per_us / usage.num_rows)


def _check_fits(
    model: ModelSize, machine: Machine, *, where: str, num_layers: int, usage: Usage, extra_bytes: int = 0
) -> None:
    tokens = usage.num_rows * (usage.prompt_tokens + usage.output_tokens)
    needed_bytes = num_layers * (model.layer_bytes + tokens * model.kv_token_bytes) + extra_bytes
    if needed_bytes > machine.memory_bytes:
        raise InvalidRequestError(
            f"{where}: {num_layers} layers of {model.name} and the KV of {usage.num_rows} sequences take "
            f"{needed_bytes / 1e9:.0f} GB, and {machine} has {machine.memory_bytes / 1e9:.0f}; "
            f"add devices or lower --max-batch-size"
        )
