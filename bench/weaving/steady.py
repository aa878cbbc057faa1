"""The steady state of a run: its throughput with ramp and drain cut off.

A window holds more prompts or more outputs than their share of the load, and an output token costs many times as much
as one of a prompt. So tokens count here by what they cost in one place: the window's work a second, turned back into
tokens by the mix of the whole load. Prompts count evenly between the first token before theirs and their own, so that
one prompt more or less at the edge of the window makes no difference.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from weaving.answers import Answer
from weaving.loads import Steady


@dataclass(frozen=True, slots=True)
class Costs:
    """What one token takes in one place, in microseconds: of a prompt, and of an output after the first."""

    prompt_token_us: float
    later_token_us: float


@dataclass(frozen=True, slots=True)
class Window:
    """The time `[begin_us, end_us)` of a run."""

    begin_us: int
    end_us: int


def steady_window(answers: Sequence[Answer], rule: Steady) -> Window | None:
    """Return the steady part of a run; `None` where the run is too short to have one."""
    firsts = [answer.token_us[0] for answer in answers]
    ends = [answer.token_us[-1] for answer in answers]
    match rule:
        case Steady.REPLENISHED:
            window = Window(min(ends), max(answer.submitted_us for answer in answers))
        case Steady.PREFILL:
            window = Window(min(firsts), max(firsts))
        case Steady.DECODE:
            window = Window(max(firsts), min(ends))
    return window if window.end_us > window.begin_us else None


def steady_tokens_per_s(answers: Sequence[Answer], window: Window, costs: Costs) -> float:
    """Return the throughput within `window`, in tokens of the load's own mix."""
    whole_us = sum(_cost_us(answer.num_prompt_tokens, len(answer.token_us) - 1, costs) for answer in answers)
    tokens = sum(answer.num_prompt_tokens + len(answer.token_us) for answer in answers)
    work_us = _cost_us(_prompt_tokens_in(answers, window), _later_tokens_in(answers, window), costs)
    return tokens * (work_us / whole_us) / ((window.end_us - window.begin_us) / 1e6)


def _cost_us(num_prompt_tokens: float, num_later_tokens: float, costs: Costs) -> float:
    return num_prompt_tokens * costs.prompt_token_us + num_later_tokens * costs.later_token_us


def _later_tokens_in(answers: Sequence[Answer], window: Window) -> int:
    return sum(window.begin_us < at_us <= window.end_us for answer in answers for at_us in answer.token_us[1:])


def _prompt_tokens_in(answers: Sequence[Answer], window: Window) -> float:
    """Return the prompt tokens of the window; each prompt is spread over the time since the first token before it."""
    tokens_at: dict[int, int] = defaultdict(int)
    for answer in answers:
        tokens_at[answer.token_us[0]] += answer.num_prompt_tokens
    begin_us = min(answer.submitted_us for answer in answers)
    total = 0.0
    for end_us, tokens in sorted(tokens_at.items()):
        shared_us = min(end_us, window.end_us) - max(begin_us, window.begin_us)
        total += tokens * max(0, shared_us) / max(1, end_us - begin_us)
        begin_us = end_us
    return total
