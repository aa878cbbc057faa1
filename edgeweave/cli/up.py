"""`edgeweave up`: a mesh on this machine, until Ctrl-C.

Knows what is shown, and which signals end it. Does not know how a mesh is started.
"""

import asyncio
import contextlib
import signal
import time

from rich.console import Console
from rich.markup import escape

from edgeweave.cli.mesh import Mesh
from edgeweave.cli.mesh_options import MeshOptions

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SHOWN_LINES = 15


async def run_up(options: MeshOptions, *, console: Console, is_verbose: bool) -> int:
    """Run a mesh until a signal or the end of one of its processes, and return the exit code.

    A second signal does not wait for the processes any longer.

    Raises:
        EdgeweaveError: the mesh did not start.
    """
    serving = asyncio.create_task(_serve(options, console=console, is_verbose=is_verbose))
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, serving.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        return await serving
    console.print("stopped")
    return 0


async def _serve(options: MeshOptions, *, console: Console, is_verbose: bool) -> int:
    begin_s = time.monotonic()
    with console.status("starting") as status:
        waiting = ["link", *options.services][options.is_centralized :]

        def tell(name: str, what: str) -> None:
            waiting.remove(name)
            status.update(f"starting: {', '.join(waiting)}")
            console.print(f"{name:10}{what}")

        def show(name: str, line: str) -> None:
            console.print(f"[dim]{name:10}[/]{escape(line)}", highlight=False)

        async with Mesh.start(options, tell=tell, on_line=show if is_verbose else None) as mesh:
            status.stop()
            console.print(f"{'gRPC':10}{mesh.scheduler_address}, for the SDK", highlight=False)
            if options.has_gateway:
                console.print(f"{'timeline':10}{mesh.url}/timeline, what each engine does", highlight=False)
            where = mesh.url if options.has_gateway else "the scheduler"
            console.print(f"[bold]{where}[/] serves after {time.monotonic() - begin_s:.1f} s; Ctrl-C stops it")
            ended = await mesh.first_end()
            console.print(f"{ended.ending}; the rest is stopped. Its last lines:")
            for line in ended.lines[-_SHOWN_LINES:]:
                show(ended.name, line)
    return 1
