"""The bench, with real processes and emulated engines."""

import json
import signal
import subprocess
import sys
from pathlib import Path

from fakes.process_table import children_of, until_gone

ROOT = Path(__file__).parents[2]


def _bench(*words: str, out: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(  # noqa: S603 (our own program)
        [sys.executable, "bench/weave.py", "--quick", "--km", "0", "--out", str(out), *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_a_load_becomes_a_page_plots_and_figures(tmp_path: Path) -> None:
    """Every token is compared, each run has its line, and nothing of this machine's folders is in what is written."""
    figures = tmp_path / "figures.json"
    bench = _bench("--loads", "prefill", "--plans", "2p1d", "--json", str(figures), out=tmp_path / "out")
    output, _ = bench.communicate(timeout=50)
    assert bench.returncode == 0, output
    assert "emulated, load prefill, 0 km, 2p1d, round 1: " in output
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "emulated-prefill-time.svg",
        "emulated-prefill.md",
    ]
    page = (tmp_path / "out" / "emulated-prefill.md").read_text(encoding="utf-8")
    assert "Written by `bench/weave.py --quick --km 0 --loads prefill --plans 2p1d` on " in page
    assert str(tmp_path) not in page + figures.read_text(encoding="utf-8")
    (table,) = json.loads(figures.read_text(encoding="utf-8"))["tables"]
    (cell,) = table["split"]
    assert 0.2 < cell["best"]["ratio"]["median"] < 2
    assert 0.9 < cell["best"]["bound"] < 1.2


def test_an_interrupt_leaves_nothing_running(tmp_path: Path) -> None:
    """Ctrl-C in the middle of a run stops the meshes, and the exit code says so."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # shells have what is in the background ignore it
    bench = _bench("--loads", "decode", "--plans", "2p1d", out=tmp_path)
    signal.signal(signal.SIGINT, before)
    assert bench.stdout is not None
    bench.stdout.readline()
    children = children_of(bench.pid)
    assert children
    bench.send_signal(signal.SIGINT)
    output, _ = bench.communicate(timeout=30)
    assert bench.returncode == 130, output
    until_gone(children)
