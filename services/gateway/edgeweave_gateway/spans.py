"""The root span of a request.

Knows the names of the GenAI semantic conventions. No attribute holds text or tokens.
"""

from typing import Final

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

from edgeweave.client import Usage
from edgeweave.telemetry import Attribute
from edgeweave_gateway.requests import GenerationRequest

_MOST_INT = 2**63 - 1


class GenAi:
    """Names of attributes, by the semantic conventions for generative AI."""

    OPERATION: Final = "gen_ai.operation.name"
    PROVIDER: Final = "gen_ai.provider.name"
    REQUEST_MODEL: Final = "gen_ai.request.model"
    CHOICE_COUNT: Final = "gen_ai.request.choice.count"
    MAX_TOKENS: Final = "gen_ai.request.max_tokens"
    TEMPERATURE: Final = "gen_ai.request.temperature"
    TOP_P: Final = "gen_ai.request.top_p"
    TOP_K: Final = "gen_ai.request.top_k"
    SEED: Final = "gen_ai.request.seed"
    RESPONSE_ID: Final = "gen_ai.response.id"
    RESPONSE_MODEL: Final = "gen_ai.response.model"
    FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
    INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
    OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"


def start_span(tracer: Tracer, request: GenerationRequest, *, operation: str, request_id: str, parent: Context) -> Span:
    """Start the span of `request`; `operation` is `chat` or `text_completion`."""
    asked = {
        GenAi.CHOICE_COUNT: request.n if (request.n or 1) > 1 else None,
        GenAi.MAX_TOKENS: request.max_output_tokens,
        GenAi.TEMPERATURE: request.temperature,
        GenAi.TOP_P: request.top_p,
        GenAi.TOP_K: request.top_k,
        GenAi.SEED: request.seed if request.seed is not None and request.seed <= _MOST_INT else None,
    }
    return tracer.start_span(
        f"{operation} {request.model}",
        context=parent,
        kind=SpanKind.SERVER,
        attributes={
            GenAi.OPERATION: operation,
            GenAi.PROVIDER: "edgeweave",
            GenAi.REQUEST_MODEL: request.model,
            Attribute.REQUEST_ID: request_id,
            **{name: value for name, value in asked.items() if value is not None},
        },
    )


def note_answer(span: Span, *, response_id: str, model: str, usage: Usage, finish_reasons: list[str]) -> None:
    """Set what is known when the answer ends, or when the client leaves."""
    span.set_attribute(GenAi.RESPONSE_ID, response_id)
    span.set_attribute(GenAi.RESPONSE_MODEL, model)
    span.set_attribute(GenAi.FINISH_REASONS, finish_reasons)
    span.set_attribute(GenAi.INPUT_TOKENS, usage.num_prompt_tokens)
    span.set_attribute(GenAi.OUTPUT_TOKENS, usage.num_output_tokens)


def note_error(span: Span, error: Exception) -> None:
    """Mark the span as failed, by the class of `error` alone."""
    span.set_attribute("error.type", type(error).__name__)
    span.set_status(Status(StatusCode.ERROR))
