"""The resource rules of the scheduler, as values. Names and meanings follow MindIE's `ScheduleConfig` (L27 to L30)."""

from dataclasses import dataclass

LARGE_SIZE = 4096
"""A chunk of short prompts is closed when it has this many tokens (L29)."""
SMALL_SIZE = 2048
"""A chunk with a prompt of `SMALL_SIZE_FROM` tokens or more is closed here."""
SMALL_SIZE_FROM = 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds a prefill chunk, a decode step, a sequence and the queue.

    `chunk_tokens` is the cut: the most tokens of one sequence in one chunk. A chunk of several sequences may hold up
    to `prefill_budget`. Prompts of `long_prompt_tokens` or more have chunks of their own. `prefill_ahead` sequences
    more than fit into the steps may be prefilled, so that a place in a step that comes free is taken at once; `None`:
    as many as a step holds.
    """

    max_prefill_batch_size: int = 50
    max_prefill_tokens: int = 8192
    max_seq_len: int = 2560
    max_batch_size: int = 200
    prefill_ahead: int | None = None
    chunk_tokens: int = 512
    long_prompt_tokens: int = 2048
    dynamic_prefill_size: bool = True
    max_waiting: int = 1000
    unit_deadline_ms: int = 60_000

    @property
    def prefill_budget(self) -> int:
        """Most tokens of one prefill chunk, inclusive."""
        return max(self.max_prefill_tokens, self.max_seq_len)

    def max_sequences(self, *, max_steps: int) -> int:
        """Sequences that may be open at once, with `max_steps` steps in flight."""
        ahead = self.prefill_ahead if self.prefill_ahead is not None else self.max_batch_size
        return max_steps * self.max_batch_size + ahead

    def staged_tokens(self, *, max_prefills: int) -> int:
        """Tokens whose hidden states wait on either side at most: those of the chunks in flight and of one more."""
        return (max_prefills + 1) * self.prefill_budget

    @property
    def largest_chunk(self) -> int:
        """Tokens that a chunk holds at most in practice: what the lanes are warmed with."""
        return min(self.prefill_budget, LARGE_SIZE) if self.dynamic_prefill_size else self.prefill_budget
