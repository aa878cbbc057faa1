"""`edgeweave up` with stand-ins; the model folder is the argument."""

import asyncio
import sys
from pathlib import Path

from rich.console import Console

from edgeweave.cli.mesh_options import MeshOptions
from edgeweave.cli.up import run_up
from fakes.stand_ins.mesh import MODULES

OPTIONS = MeshOptions(model=Path(sys.argv[1]), port=0, rtt_ms=2, modules=MODULES, stop_deadline_s=1.0)

sys.exit(asyncio.run(run_up(OPTIONS, console=Console(), is_verbose=False)))
