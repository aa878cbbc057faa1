"""The words of the command line, with their flags and help.

Knows how flags are spelled. Everything that is done is done elsewhere.
"""

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from edgeweave import __version__
from edgeweave.cli.mesh_options import MeshOptions
from edgeweave.cli.plan import ModelOptions, PlanOptions, run_plan
from edgeweave.cli.serve import become_service, require_packages
from edgeweave.cli.simulate import Question, run_sim
from edgeweave.cli.top import TopOptions, run_top
from edgeweave.cli.trace_export import ExportOptions, TraceFormat, read_kept, write_trace
from edgeweave.cli.up import run_up
from edgeweave.link.__main__ import main as run_link

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,  # they show local variables, and prompts are among them
    help="Large-model inference split by layers between a site and a distant cloud.",
)

serve_app = typer.Typer(help="Run one service; `edgeweave serve edge --help` lists the flags of the edge.")
app.add_typer(serve_app, name="serve")

trace_app = typer.Typer(help="What a mesh did lately, as spans.")
app.add_typer(trace_app, name="trace")

# How a command finds the scheduler of a site, and speaks to it.
SchedulerOption = Annotated[str | None, typer.Option(help="Address of the scheduler, HOST:PORT [127.0.0.1:50050]")]
ConfigOption = Annotated[Path | None, typer.Option(help="Settings file; address and TLS are the gateway's.")]
CaFileOption = Annotated[Path | None, typer.Option(help="PEM file with the authorities of the site.")]
CertFileOption = Annotated[Path | None, typer.Option(help="PEM file with our certificate chain.")]
KeyFileOption = Annotated[Path | None, typer.Option(help="PEM file with our private key.")]

PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""The flags of a service or of the link are its own; it explains and checks them itself."""


@serve_app.command(context_settings=PASS_ON)
def gateway(context: typer.Context) -> None:
    """HTTP for clients: OpenAI-compatible, with tokenizer and chat template."""
    become_service("gateway", context.args)


@serve_app.command(context_settings=PASS_ON)
def scheduler(context: typer.Context) -> None:
    """Batching, admission and the interleave plan."""
    become_service("scheduler", context.args)


@serve_app.command(context_settings=PASS_ON)
def edge(context: typer.Context) -> None:
    """First and last layers, and sampling, on the site."""
    become_service("edge", context.args)


@serve_app.command(context_settings=PASS_ON)
def cloud(context: typer.Context) -> None:
    """The middle layers, away from the site."""
    become_service("cloud", context.args)


@app.command(context_settings=PASS_ON)
def link(context: typer.Context) -> None:
    """Run the link emulator: a TCP proxy with the delay and rate of a wide-area link; --help lists its flags."""
    run_link(context.args)


@app.command()
def up(  # noqa: PLR0913 (one parameter a flag)
    *,
    model: Annotated[Path | None, typer.Option(help="Model folder.")] = None,
    emulate: Annotated[str | None, typer.Option(help="Instead of a model, hardware: npu, or a YAML file.")] = None,
    distance_km: Annotated[float, typer.Option(min=0, help="Fibre between site and cloud, in km.")] = 1000.0,
    rtt_ms: Annotated[float | None, typer.Option(min=0, help="Round trip in ms, instead of a distance.")] = None,
    bandwidth_gbit: Annotated[float, typer.Option(min=1e-6, help="Rate of the link each way, in Gbit/s.")] = 10.0,
    plan: Annotated[str | None, typer.Option(help="serial, 1p1d, 2p1d or adaptive [adaptive]")] = None,
    split: Annotated[str | None, typer.Option(help="Layers of head and tail at the site [1:1]")] = None,
    centralized: Annotated[bool, typer.Option("--centralized", help="All layers in one place, no cloud.")] = False,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port of the gateway; 0: any [8000]")] = None,
    config: Annotated[Path | None, typer.Option(help="Settings file of all services, YAML or JSON.")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16 or float16 [float32]")] = None,
    weights_dtype: Annotated[str | None, typer.Option(help="Type of weights alone, as bfloat16 [dtype]")] = None,
    max_steps: Annotated[int | None, typer.Option(help="Most decode steps in flight [1]")] = None,
    max_prefills: Annotated[int | None, typer.Option(help="Most chunks in flight [by plan]")] = None,
    num_segments: Annotated[int | None, typer.Option(help="Segments of a chunk [4]")] = None,
    fuse: Annotated[str | None, typer.Option(help="Rows of steps in prefill: auto, never or always [auto]")] = None,
    log_dir: Annotated[Path | None, typer.Option(help="Folder for a log file of each part.")] = None,
    pin: Annotated[bool, typer.Option("--pin", help="The cloud on CPU core 1, the site on core 0.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show what the parts write.")] = False,
) -> None:
    """Run site, link and cloud as processes on this machine, until Ctrl-C."""
    options = MeshOptions(
        model=model,
        emulate=emulate,
        is_centralized=centralized,
        distance_km=distance_km,
        rtt_ms=rtt_ms,
        bandwidth_gbit=bandwidth_gbit,
        port=port,
        plan=plan,
        split=split,
        dtype=dtype,
        weights_dtype=weights_dtype,
        max_steps=max_steps,
        max_prefills=max_prefills,
        num_segments=num_segments,
        fuse=fuse,
        config=config,
        log_dir=log_dir,
        is_pinned=pin,
    )
    raise typer.Exit(asyncio.run(run_up(options, console=Console(), is_verbose=verbose)))


@app.command()
def sim(  # noqa: PLR0913 (one parameter a flag)
    *,
    load: Annotated[str, typer.Option(help="balanced, prefill-rich, prefill-only, decode-only, or a trace file.")],
    profile: Annotated[str, typer.Option(help="Hardware: npu, or a YAML file.")] = "npu",
    plan: Annotated[str, typer.Option(help="serial, 1p1d, 2p1d, adaptive, or all.")] = "all",
    distance_km: Annotated[float, typer.Option(min=0, help="Fibre between site and cloud, in km.")] = 1000.0,
    bandwidth_gbit: Annotated[float, typer.Option(min=1e-6, help="Rate of the link each way, in Gbit/s.")] = 10.0,
    max_batch_size: Annotated[int, typer.Option(min=1, help="Most sequences of a step.")] = 64,
    max_prefill_tokens: Annotated[int, typer.Option(min=1, help="Most tokens of a chunk.")] = 2048,
    max_seq_len: Annotated[int, typer.Option(min=1, help="Most tokens of a sequence.")] = 32_768,
    chunk_tokens: Annotated[int, typer.Option(min=1, help="Tokens of one piece of a long prompt.")] = 2048,
    num_segments: Annotated[int | None, typer.Option(min=1, help="Segments of a chunk [by length]")] = None,
    divide_by: Annotated[int, typer.Option(min=1, help="Divide the lengths of a trace by this.")] = 1,
    limit: Annotated[int | None, typer.Option(min=1, help="Take this many requests of a trace [all]")] = None,
) -> None:
    """Simulate a load under each plan, without hardware: the scheduler and both engines in virtual time."""
    question = Question(
        profile=profile,
        load=load,
        plan=plan,
        distance_km=distance_km,
        bandwidth_gbit=bandwidth_gbit,
        max_batch_size=max_batch_size,
        max_prefill_tokens=max_prefill_tokens,
        max_seq_len=max_seq_len,
        chunk_tokens=chunk_tokens,
        num_segments=num_segments,
        divide_by=divide_by,
        limit=limit,
    )
    run_sim(question, console=Console())


@app.command()
def plan(  # noqa: PLR0913 (one parameter a flag)
    *,
    load: Annotated[str, typer.Option(help="balanced, prefill-rich, prefill-only, decode-only, or a trace file.")],
    profile: Annotated[str, typer.Option(help="Hardware with its model: npu, or a YAML file.")] = "npu",
    model: Annotated[Path | None, typer.Option(help="Model folder with a config.json, instead of a profile.")] = None,
    hardware: Annotated[str, typer.Option(help="For --model: a name, or a YAML file.")] = "ascend-910b",
    edge_hardware: Annotated[str | None, typer.Option(help="For --model, at the site [as the cloud's]")] = None,
    cloud_devices: Annotated[int, typer.Option(min=1, help="For --model: accelerators in the cloud.")] = 1,
    edge_devices: Annotated[int, typer.Option(min=1, help="For --model: accelerators at the site.")] = 1,
    split: Annotated[str, typer.Option(help="For --model: layers of head and tail at the site.")] = "1:1",
    distance_km: Annotated[float, typer.Option(min=0, max=20_000, help="Fibre to the cloud, in km.")] = 1000.0,
    bandwidth_gbit: Annotated[float, typer.Option(min=1e-6, max=1e6, help="Rate each way, in Gbit/s.")] = 10.0,
    max_batch_size: Annotated[int, typer.Option(min=1, help="Most sequences of a step.")] = 64,
    max_prefill_tokens: Annotated[int, typer.Option(min=1, help="Most tokens of a chunk.")] = 2048,
    max_seq_len: Annotated[int, typer.Option(min=1, help="Most tokens of a sequence.")] = 32_768,
    chunk_tokens: Annotated[int, typer.Option(min=1, help="Tokens of one piece of a long prompt.")] = 2048,
    max_loss_percent: Annotated[float, typer.Option(min=0, max=100, help="Loss that is accepted.")] = 5.0,
    divide_by: Annotated[int, typer.Option(min=1, help="Divide the lengths of a trace by this.")] = 1,
    limit: Annotated[int | None, typer.Option(min=1, help="Take this many requests of a trace [all]")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw loss over distance into this .svg or .png file.")] = None,
    is_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Recommend a plan for a model, hardware, link and load, and say how far away the cloud may be."""
    machines = (
        ModelOptions(
            folder=model,
            hardware=hardware,
            edge_hardware=edge_hardware,
            cloud_devices=cloud_devices,
            edge_devices=edge_devices,
            split=split,
        )
        if model is not None
        else None
    )
    options = PlanOptions(
        profile=profile,
        model=machines,
        load=load,
        distance_km=distance_km,
        bandwidth_gbit=bandwidth_gbit,
        max_batch_size=max_batch_size,
        max_prefill_tokens=max_prefill_tokens,
        max_seq_len=max_seq_len,
        chunk_tokens=chunk_tokens,
        max_loss_percent=max_loss_percent,
        divide_by=divide_by,
        limit=limit,
        plot=plot,
        is_json=is_json,
    )
    run_plan(options, console=Console(), progress=Console(stderr=True))


@app.command()
def demo(
    *,
    model: Annotated[Path | None, typer.Option(help="Model folder [the embedded model]")] = None,
    distance_km: Annotated[float, typer.Option(min=0, help="Fibre between site and cloud, in km.")] = 1000.0,
    bandwidth_gbit: Annotated[float, typer.Option(min=1e-6, help="Rate of the link each way, in Gbit/s.")] = 10.0,
    plan: Annotated[str | None, typer.Option(help="serial, 1p1d, 2p1d or adaptive [adaptive]")] = None,
    split: Annotated[str | None, typer.Option(help="Layers of head and tail at the site [1:1]")] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Most tokens of an answer.")] = 32,
    cache: Annotated[Path, typer.Option(help="Folder that keeps the embedded model.")] = Path(".cache/models"),
) -> None:
    """Answer real questions over an emulated link, and check every token against one process."""
    require_packages("demo")
    from edgeweave.cli.demo import run_demo  # noqa: PLC0415 (needs packages that the other commands do not)

    options = MeshOptions(
        model=model,
        distance_km=distance_km,
        bandwidth_gbit=bandwidth_gbit,
        port=0,
        plan=plan,
        split=split,
        dtype="float32",
    )
    raise typer.Exit(asyncio.run(run_demo(options, cache=cache, max_tokens=max_tokens, console=Console())))


@app.command()
def top(
    *,
    scheduler: SchedulerOption = None,
    interval_s: Annotated[float, typer.Option(min=0.1, max=60.0, help="Time that one picture shows, in s.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Show one interval and end; exit code 1: down.")] = False,
    is_json: Annotated[bool, typer.Option("--json", help="Print a JSON object for each interval instead.")] = False,
    config: ConfigOption = None,
    tls_ca_file: CaFileOption = None,
    tls_cert_file: CertFileOption = None,
    tls_key_file: KeyFileOption = None,
) -> None:
    """Watch a mesh: what each engine does and waits for, the plan, the link, and what users get."""
    options = TopOptions(
        scheduler=scheduler,
        tls_ca_file=tls_ca_file,
        tls_cert_file=tls_cert_file,
        tls_key_file=tls_key_file,
        config=config,
        interval_s=interval_s,
        is_once=once,
        is_json=is_json,
    )
    raise typer.Exit(asyncio.run(run_top(options, console=Console(), warnings=Console(stderr=True))))


@trace_app.command()
def export(
    file: Annotated[Path, typer.Argument(help="The file to write.")],
    *,
    form: Annotated[TraceFormat, typer.Option("--format", help="What opens it.")] = TraceFormat.PERFETTO,
    last_s: Annotated[float | None, typer.Option(min=0.001, help="Only so many seconds [all that is kept]")] = None,
    scheduler: SchedulerOption = None,
    config: ConfigOption = None,
    tls_ca_file: CaFileOption = None,
    tls_cert_file: CertFileOption = None,
    tls_key_file: KeyFileOption = None,
) -> None:
    """Write what a mesh did lately as a file for Perfetto, Jaeger or a reader of OTLP."""
    options = ExportOptions(file, form, last_s, scheduler, tls_ca_file, tls_cert_file, tls_key_file, config)
    spans = asyncio.run(read_kept(options))
    write_trace(spans, options)
    typer.echo(f"{len(spans)} spans in {file}")


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)
