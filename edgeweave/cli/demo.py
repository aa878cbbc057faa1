"""`edgeweave demo`: real answers over an emulated link, and the proof that every token is right.

Knows the order of the show. The mesh, the chat and the comparison are elsewhere.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from edgeweave.child import child_command
from edgeweave.cli.chat import Answer, Chat
from edgeweave.cli.cloud_use import cloud_use, read_state
from edgeweave.cli.comparison import Tokens, differences, reference_outputs
from edgeweave.cli.demo_report import cloud_table, times_table
from edgeweave.cli.folders import made_folder
from edgeweave.cli.mesh import Mesh
from edgeweave.cli.mesh_options import MeshOptions
from edgeweave.client import Client
from edgeweave.errors import UnavailableError
from edgeweave.text import TextModel

FIRST_QUESTION = "What is the capital of France?"
MORE_QUESTIONS = (
    "Name three primary colors.",
    "What do bees make?",
    "Explain in one sentence why the sky is blue.",
    "Write a short sentence about the sea.",
)
QUESTIONS = (FIRST_QUESTION, *MORE_QUESTIONS)


async def run_demo(options: MeshOptions, *, cache: Path, max_tokens: int, console: Console) -> int:
    """Run the demo, with the embedded model if `options` name none; return 0 if every token was equal, else 1.

    Raises:
        EdgeweaveError: the model, the mesh or the reference could not be had.
    """
    model = options.model or await _embedded_model(cache)
    text_model = TextModel.load(model)
    async with _mesh(replace(options, model=model), console=console) as mesh, Client(mesh.scheduler_address) as client:
        before = await read_state(client)
        answers = await _converse(mesh.url, max_tokens=max_tokens, console=console)
        use = cloud_use(before, await read_state(client))
        prompts = [text_model.encode_chat([{"role": "user", "content": question}]) for question in QUESTIONS]
        outputs = await asyncio.gather(
            *(_tokens(client, prompt, max_tokens=max_tokens, text_model=text_model) for prompt in prompts)
        )
    console.print(times_table(answers[0], answers[1:]), cloud_table(use, distance_km=options.distance_km))
    with console.status("the same prompts through transformers, in one process"):
        reference = await reference_outputs(
            model, prompts, max_tokens=max_tokens, stop_token_ids=text_model.stop_token_ids
        )
    wrong = [*differences(outputs, reference), *_other_texts(answers, reference, text_model=text_model)]
    return _verdict(wrong, num_tokens=sum(map(len, reference)), console=console)


@asynccontextmanager
async def _mesh(options: MeshOptions, *, console: Console) -> AsyncIterator[Mesh]:
    begin_s = time.monotonic()
    with console.status("starting site, link and cloud") as status:
        async with Mesh.start(options, tell=lambda name, what: status.update(f"starting: {name} {what}")) as mesh:
            status.stop()
            place = f"{options.distance_km:,.0f} km and {options.bandwidth_gbit:g} Gbit/s between site and cloud"
            console.print(f"{place}; {mesh.url} serves after {time.monotonic() - begin_s:.0f} s\n", soft_wrap=True)
            yield mesh


async def _converse(url: str, *, max_tokens: int, console: Console) -> list[Answer]:
    """Ask one question and show its answer while it comes, then the others side by side."""

    def show(text: str) -> None:
        console.print(text, end="", markup=False, highlight=False, soft_wrap=True)

    async with Chat(url, max_tokens=max_tokens) as chat:
        console.print(f"[bold]{FIRST_QUESTION}[/]")
        first = await chat.ask(FIRST_QUESTION, on_text=show)
        console.print("\n")
        more = await asyncio.gather(*(chat.ask(question) for question in MORE_QUESTIONS))
    for question, answer in zip(MORE_QUESTIONS, more, strict=True):
        console.print(f"[bold]{question}[/] {escape(' '.join(answer.text.split()))}", highlight=False, soft_wrap=True)
    console.print()
    return [first, *more]


async def _tokens(client: Client, prompt: Tokens, *, max_tokens: int, text_model: TextModel) -> Tokens:
    """Return the output for a prompt as token ids, which HTTP does not give."""
    output: list[int] = []
    deltas = client.generate(prompt, max_tokens=max_tokens, stop_token_ids=text_model.stop_token_ids)
    async with aclosing(deltas):
        async for delta in deltas:
            output += delta.token_ids
    return tuple(output)


def _other_texts(answers: Sequence[Answer], reference: Sequence[Tokens], *, text_model: TextModel) -> list[str]:
    """Return a line for each answer over HTTP whose text is not that of the reference's tokens."""
    return [
        f"answer {number}: {answer.text!r} over HTTP, {text_model.decode(tokens)!r} in one process"
        for number, (answer, tokens) in enumerate(zip(answers, reference, strict=True), start=1)
        if answer.text != text_model.decode(tokens)
    ]


def _verdict(wrong: Sequence[str], *, num_tokens: int, console: Console) -> int:
    if not wrong:
        console.print(f"[bold green]all tokens equal[/] ({num_tokens} tokens of {len(QUESTIONS)} answers)")
        return 0
    for line in wrong:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print(f"[bold red]{len(wrong)} differences[/]")
    return 1


async def _embedded_model(cache: Path) -> Path:
    """Return the folder of the embedded model; its progress is shown on standard error."""
    child = await asyncio.create_subprocess_exec(
        *child_command("edgeweave.model.embedded", "--cache", str(made_folder(cache, flag="--cache"))),
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await child.communicate()
    if child.returncode:
        raise UnavailableError("the embedded model could not be prepared, as said above; or name one with --model")
    return Path(output.decode().strip())
