"""The bodies of requests, as the OpenAI API has them.

Knows names, types and ranges of parameters. Does not know the model: whether a prompt fits is checked later.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from edgeweave_gateway.neutral import Ignored, NoFlag, NoList, NotOffered, One, Zero, only

MAX_CHOICES = 128
MAX_STOP_STRINGS = 16

# A prompt is text or token ids; a request may have several.
Prompt = str | tuple[int, ...]


def _prompts(value: Any) -> tuple[Prompt, ...]:
    """Return the prompts in any of the four forms of the API."""
    values = value if isinstance(value, list) and not _all_are(value, int) else [value]
    if not values or not all(isinstance(prompt, str) or _all_are(prompt, int) for prompt in values):
        raise PydanticCustomError(
            "prompt", "must be a string, a list of strings, a list of token ids, or a list of such lists"
        )
    return tuple(prompt if isinstance(prompt, str) else tuple(prompt) for prompt in values)


def _stop_strings(value: Any) -> tuple[str, ...]:
    values = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not _all_are(values, str) or "" in values:
        raise PydanticCustomError("stop", "must be a string or a list of strings, none of them empty")
    if len(values) > MAX_STOP_STRINGS:
        raise PydanticCustomError("stop", f"has {len(values)} strings; at most {MAX_STOP_STRINGS} are allowed")
    return tuple(values)


def _content(value: Any) -> str | None:
    """Return the text of a message; parts of text are joined by line ends."""
    if value is None or isinstance(value, str):
        return value
    is_text = [_text_of(part) is not None for part in value] if isinstance(value, list) else [False]
    if not all(is_text):
        raise PydanticCustomError("content", "must be a string or a list of parts of type text")
    return "\n".join(part["text"] for part in value)


def _text_of(part: Any) -> str | None:
    is_text = isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
    return part["text"] if is_text else None


def _all_are(values: Any, kind: type) -> bool:
    return isinstance(values, list) and all(type(value) is kind for value in values)


class ChatMessage(BaseModel):
    """One message. What clients echo from answers beyond these fields is left out."""

    model_config = ConfigDict(extra="ignore", strict=True)

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Annotated[str | None, BeforeValidator(_content)] = None
    name: str | None = None
    tool_call_id: str | None = None
    tool_calls: list[dict[str, Any]] | None = None

    @model_validator(mode="after")
    def _has_content(self) -> "ChatMessage":
        if self.content is None and not self.tool_calls:
            raise PydanticCustomError("content", "has no content; give a string or a list of parts of type text")
        return self


class StreamOptions(BaseModel):
    """Options of a streamed answer."""

    model_config = ConfigDict(extra="forbid", strict=True)

    include_usage: bool | None = None
    include_obfuscation: Ignored = None


class GenerationRequest(BaseModel):
    """What chat and plain completion have in common."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    model: str
    max_tokens: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    n: Annotated[int, Field(ge=1, le=MAX_CHOICES)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=-1, lt=2**31)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**64)] | None = None
    stop: Annotated[tuple[str, ...], BeforeValidator(_stop_strings)] = ()
    stop_token_ids: list[Annotated[int, Field(ge=0, lt=2**32)]] | None = None
    ignore_eos: bool | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None

    presence_penalty: Zero = None
    frequency_penalty: Zero = None
    repetition_penalty: One = None
    min_p: Zero = None
    min_tokens: Zero = None
    logit_bias: NoList = None

    user: Ignored = None
    metadata: Ignored = None
    store: Ignored = None
    service_tier: Ignored = None
    safety_identifier: Ignored = None
    prompt_cache_key: Ignored = None

    @property
    def max_output_tokens(self) -> int | None:
        """Most output tokens that the client asked for."""
        return self.max_tokens


class ChatRequest(GenerationRequest):
    """Body of `POST /v1/chat/completions`."""

    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    max_completion_tokens: Annotated[int, Field(ge=1, lt=2**31)] | None = None

    logprobs: NoFlag = None
    top_logprobs: Zero = None
    tools: NoList = None
    tool_choice: Annotated[Any, only("none", "auto")] = None
    parallel_tool_calls: Ignored = None
    functions: NoList = None
    function_call: Annotated[Any, only("none", "auto")] = None
    response_format: Annotated[Any, only({"type": "text"})] = None
    modalities: Annotated[Any, only(["text"])] = None
    audio: NotOffered = None
    prediction: NotOffered = None
    reasoning_effort: NotOffered = None
    verbosity: NotOffered = None
    web_search_options: NotOffered = None

    @property
    def max_output_tokens(self) -> int | None:
        """Most output tokens that the client asked for, under the newer name or the older."""
        return self.max_completion_tokens or self.max_tokens


class CompletionRequest(GenerationRequest):
    """Body of `POST /v1/completions`."""

    prompt: Annotated[tuple[Prompt, ...], BeforeValidator(_prompts)]
    echo: bool | None = None

    logprobs: NoFlag = None
    best_of: One = None
    suffix: Annotated[Any, only("")] = None
