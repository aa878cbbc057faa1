"""What a request asks the scheduler for: one choice for each prompt and each of its `n` outputs.

Knows tokenizing, limits, defaults and seeds. Does not know HTTP or the scheduler.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256

from edgeweave.errors import PromptTooLongError
from edgeweave.interleave.nouns import Sampling
from edgeweave.text import TextModel
from edgeweave_gateway.http_errors import InvalidParameterError
from edgeweave_gateway.requests import MAX_CHOICES, ChatRequest, CompletionRequest, GenerationRequest, Prompt

# The defaults of the OpenAI API; a chat answer without a limit may fill what the model has room for.
_DEFAULT_TEMPERATURE = 1.0
_DEFAULT_COMPLETION_TOKENS = 16
# Where neither model nor scheduler names a limit.
_DEFAULT_CHAT_TOKENS = 1024
_SEED_VALUES = 1 << 64


@dataclass(frozen=True, slots=True)
class Choice:
    """One output to generate.

    `prompt` numbers the prompts of the request. `context_token_ids` is the text that the output goes on from, empty
    for an answer that stands alone; `echo` is given before the output.
    """

    prompt: int
    prompt_token_ids: tuple[int, ...]
    context_token_ids: tuple[int, ...]
    max_tokens: int
    sampling: Sampling
    echo: str = ""


@dataclass(frozen=True, slots=True)
class Choices:
    """All choices of one request, in the order of their index, and where they end."""

    choices: tuple[Choice, ...]
    stop: tuple[str, ...]
    stop_token_ids: frozenset[int]

    @property
    def num_prompt_tokens(self) -> int:
        """Tokens of all prompts; a prompt with several outputs counts once."""
        return sum({choice.prompt: len(choice.prompt_token_ids) for choice in self.choices}.values())


class ChoiceMaker:
    """Turns requests into choices, for one model. `random_seed` gives a seed to a request that has none."""

    def __init__(self, text_model: TextModel, *, random_seed: Callable[[], int]) -> None:
        self._model = text_model
        self._random_seed = random_seed

    def for_chat(self, request: ChatRequest, *, max_seq_len: int | None) -> Choices:
        """Return the choices of a conversation; `max_seq_len` is what the scheduler has room for.

        Raises:
            InvalidRequestError: the template refuses the messages, or the prompt does not fit.
        """
        messages = [_template_message(message.model_dump()) for message in request.messages]
        token_ids = self._model.encode_chat(messages)
        max_tokens = self._max_tokens(request, token_ids, param="messages", max_seq_len=max_seq_len, default=None)
        choices = (Choice(0, token_ids, (), max_tokens, sampling) for sampling in self._samplings(request))
        return self._choices(request, choices)

    def for_completion(self, request: CompletionRequest, *, max_seq_len: int | None) -> Choices:
        """Return the choices of plain prompts.

        Raises:
            InvalidRequestError: a prompt is empty, too long, or has ids that the model does not know.
        """
        num_choices = len(request.prompt) * (request.n or 1)
        if num_choices > MAX_CHOICES:
            raise InvalidParameterError(
                f"the request asks for {num_choices} outputs; at most {MAX_CHOICES} are allowed", param="prompt"
            )
        samplings = self._samplings(request)
        choices = []
        for index, prompt in enumerate(request.prompt):
            token_ids = self._token_ids(prompt)
            max_tokens = self._max_tokens(
                request, token_ids, param="prompt", max_seq_len=max_seq_len, default=_DEFAULT_COMPLETION_TOKENS
            )
            echo = self._echo(prompt) if request.echo else ""
            choices += [Choice(index, token_ids, token_ids, max_tokens, each, echo) for each in samplings]
        return self._choices(request, choices)

    def _choices(self, request: GenerationRequest, choices: Iterable[Choice]) -> Choices:
        ends = frozenset() if request.ignore_eos else self._model.stop_token_ids
        return Choices(tuple(choices), request.stop, ends | frozenset(request.stop_token_ids or ()))

    def _token_ids(self, prompt: Prompt) -> tuple[int, ...]:
        if isinstance(prompt, str):
            return self._model.encode(prompt) if prompt else ()
        unknown = next((token_id for token_id in prompt if not 0 <= token_id < self._model.vocab_size), None)
        if unknown is not None:
            raise InvalidParameterError(
                f"prompt has token id {unknown}; this model has ids from 0 to {self._model.vocab_size - 1}",
                param="prompt",
            )
        return prompt

    def _echo(self, prompt: Prompt) -> str:
        return prompt if isinstance(prompt, str) else self._model.decode(prompt)

    def _max_tokens(
        self,
        request: GenerationRequest,
        token_ids: tuple[int, ...],
        *,
        param: str,
        max_seq_len: int | None,
        default: int | None,
    ) -> int:
        """Return how many tokens the output may have."""
        if not token_ids:
            raise InvalidParameterError(f"{param}: the prompt is empty; give at least one token", param=param)
        limits = [limit for limit in (self._model.max_positions, max_seq_len) if limit is not None]
        asked = request.max_output_tokens or default
        if not limits:
            return asked or _DEFAULT_CHAT_TOKENS
        limit = min(limits)
        room = limit - len(token_ids)
        if room < (request.max_output_tokens or 1):
            raise PromptTooLongError(_too_long(len(token_ids), request.max_output_tokens, limit))
        return min(asked or room, room)

    def _samplings(self, request: GenerationRequest) -> list[Sampling]:
        """Return one sampling for each of `n`; only the seed differs, and the first has the request's own."""
        temperature = _DEFAULT_TEMPERATURE if request.temperature is None else request.temperature
        return [
            Sampling(
                temperature=temperature,
                top_k=max(0, request.top_k or 0),  # other servers write -1 for all tokens
                top_p=request.top_p or 1.0,
                seed=_nth_seed(seed, nth),
            )
            for seed in [self._seed(request, temperature)]
            for nth in range(request.n or 1)
        ]

    def _seed(self, request: GenerationRequest, temperature: float) -> int:
        if request.seed is not None:
            return request.seed % _SEED_VALUES
        return self._random_seed() if temperature > 0 else 0


def _template_message(message: dict[str, object]) -> dict[str, object]:
    """Return the message as templates know it: `developer` is the newer name of `system`."""
    return {**message, "role": "system"} if message["role"] == "developer" else message


def _nth_seed(seed: int, nth: int) -> int:
    if nth == 0:
        return seed
    digest = sha256(seed.to_bytes(8, "big") + nth.to_bytes(4, "big")).digest()
    return int.from_bytes(digest[:8], "big")


def _too_long(num_prompt_tokens: int, max_tokens: int | None, limit: int) -> str:
    asked = f" and max_tokens is {max_tokens}" if max_tokens else ""
    return (
        f"this model has room for {limit} tokens, prompt and output together; the prompt has {num_prompt_tokens}"
        f"{asked}; make them fit"
    )
