"""Turns a message of a client into a request, or says what is wrong with it.

Knows the legal values. Does not know whether the request fits the mesh: the core says that.
"""

import math
from collections.abc import Callable

from edgeweave.errors import InvalidRequestError
from edgeweave.interleave.nouns import Sampling
from edgeweave.interleave.requests import Request
from edgeweave.v1 import scheduler_pb2 as pb
from edgeweave.wire.edge import sampling_of

MAX_REQUEST_ID_CHARACTERS = 256


def request_of(
    message: pb.GenerateRequest,
    *,
    now_us: int,
    new_id: Callable[[], str],
    new_seed: Callable[[], int],
) -> Request:
    """Return the request in `message`.

    Raises:
        InvalidRequestError: a value is not legal; the text names the field.
    """
    _check(message)
    sampling = sampling_of(message.sampling)
    _check_sampling(sampling)
    if not message.sampling.HasField("seed"):
        sampling = Sampling(sampling.temperature, sampling.top_k, sampling.top_p, new_seed())
    return Request(
        request_id=message.request_id or new_id(),
        prompt=tuple(message.prompt_token_ids),
        max_tokens=message.max_tokens,
        output=list(message.output_token_ids),
        sampling=sampling,
        stop_token_ids=frozenset(message.stop_token_ids),
        arrived_us=now_us,
        deadline_us=now_us + message.deadline_ms * 1000 if message.deadline_ms else None,
    )


def _check(message: pb.GenerateRequest) -> None:
    if not message.prompt_token_ids:
        raise InvalidRequestError("prompt_token_ids is empty; a prompt has at least one token")
    if message.max_tokens < 1:
        raise InvalidRequestError("max_tokens is 0; at least 1 token must be asked for")
    if len(message.output_token_ids) >= message.max_tokens:
        raise InvalidRequestError(
            f"output_token_ids has {len(message.output_token_ids)} tokens and max_tokens is {message.max_tokens}; "
            "nothing is left to generate"
        )
    if len(message.request_id) > MAX_REQUEST_ID_CHARACTERS:
        raise InvalidRequestError(f"request_id is longer than {MAX_REQUEST_ID_CHARACTERS} characters")


def _check_sampling(sampling: Sampling) -> None:
    if not math.isfinite(sampling.temperature) or sampling.temperature < 0:
        raise InvalidRequestError(f"temperature {sampling.temperature} is not legal; give 0 (greedy) or more")
    if not 0 < sampling.top_p <= 1:
        raise InvalidRequestError(f"top_p {sampling.top_p} is not legal; give more than 0 and at most 1")
