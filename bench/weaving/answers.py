"""What a client saw of one request, and what users would say of many.

Knows times of tokens. Does not know why they came late.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """One request: when it was submitted, and its tokens, each with the time at which the client had it.

    Times are microseconds of one clock.
    """

    submitted_us: int
    num_prompt_tokens: int
    token_ids: tuple[int, ...]
    token_us: tuple[int, ...]

    @property
    def first_token_us(self) -> int:
        """Time to first token."""
        return self.token_us[0] - self.submitted_us

    @property
    def per_token_us(self) -> float | None:
        """Time per output token after the first; `None` where there is one token only."""
        later = len(self.token_us) - 1
        return (self.token_us[-1] - self.token_us[0]) / later if later else None


@dataclass(frozen=True, slots=True)
class Latency:
    """Quantiles of time to first token and of time per output token, in milliseconds.

    The latter are `None` where no request has a second token.
    """

    ttft_p50_ms: float
    ttft_p90_ms: float
    tpot_p50_ms: float | None
    tpot_p90_ms: float | None

    @classmethod
    def of(cls, answers: Sequence[Answer]) -> "Latency":
        """Return the latency of at least one answer."""
        firsts = [answer.first_token_us / 1000 for answer in answers]
        laters = [answer.per_token_us / 1000 for answer in answers if answer.per_token_us is not None]
        return cls(
            quantile(firsts, 0.5),
            quantile(firsts, 0.9),
            quantile(laters, 0.5) if laters else None,
            quantile(laters, 0.9) if laters else None,
        )


def wall_us(answers: Sequence[Answer]) -> int:
    """Return the time from the first submission to the last token."""
    return max(answer.token_us[-1] for answer in answers) - min(answer.submitted_us for answer in answers)


def num_tokens(answers: Sequence[Answer]) -> int:
    """Return the tokens of all prompts and outputs."""
    return sum(answer.num_prompt_tokens + len(answer.token_ids) for answer in answers)


def tokens_per_s(answers: Sequence[Answer]) -> float:
    """Return the throughput of the whole run, ramp and drain included."""
    return num_tokens(answers) / (wall_us(answers) / 1e6)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` of all are not above, between two of them by a straight line."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def good_share(answers: Sequence[Answer], limits: Latency, *, slack: float = 1.5) -> float:
    """Return the share of requests whose TTFT and TPOT are within `slack` times the 90 % quantiles of `limits`."""
    return sum(_is_good(answer, limits, slack=slack) for answer in answers) / len(answers)


def _is_good(answer: Answer, limits: Latency, *, slack: float) -> bool:
    if answer.first_token_us / 1000 > slack * limits.ttft_p90_ms:
        return False
    if answer.per_token_us is None or limits.tpot_p90_ms is None:
        return True
    return answer.per_token_us / 1000 <= slack * limits.tpot_p90_ms
