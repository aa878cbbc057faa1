"""From pieces of text to an answer, streamed or whole.

Knows the order of an answer's bodies. Does not know which form they have.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from edgeweave_gateway.generation import Generation
from edgeweave_gateway.replies import Body, Output, Replies


async def whole_answer(generation: Generation, replies: Replies) -> Body:
    """Return the answer once all outputs have ended."""
    outputs = [Output("")] * generation.num_choices
    async with aclosing(generation.pieces()) as pieces:
        async for index, piece in pieces:
            outputs[index] = Output(outputs[index].text + piece.text, piece.finish)
    return replies.whole(outputs, generation.usage)


async def streamed_answer(
    generation: Generation, replies: Replies, *, include_usage: bool
) -> AsyncGenerator[Body, None]:
    """Yield the bodies of a stream; the first one comes with the first text, when nothing was refused."""
    opened: set[int] = set()
    async with aclosing(generation.pieces()) as pieces:
        async for index, piece in pieces:
            if index not in opened:
                opened.add(index)
                for body in replies.opening(index):
                    yield body
            for body in replies.piece(index, piece):
                yield body
    if include_usage:
        yield replies.usage(generation.usage)
