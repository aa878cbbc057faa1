"""Counts what the exactness tests compared, and says it at the end of the run."""

import pytest
import torch

from exact.tally import Tally

_TALLY = pytest.StashKey[Tally]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_TALLY] = Tally()


@pytest.fixture
def tally(pytestconfig: pytest.Config) -> Tally:
    return pytestconfig.stash[_TALLY]


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    """Several test processes share the cores; one thread each is the fastest for all."""
    torch.set_num_threads(1)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    tally = config.stash[_TALLY]
    if tally.num_tokens:
        terminalreporter.write_line(
            f"exactness: {tally.num_tokens} tokens compared, {tally.num_excused} outputs left the reference at a tie"
        )
