"""An engine as a process: real ones, of a few lines."""

import sys

import pytest

from contest.engines import Command
from contest.process import EngineProcess
from edgeweave.errors import UnavailableError

ECHO = """
from contest.turns import Streams
streams = Streams.taken()
print("a library says hello")
streams.serve(lambda request: {"heard": request["word"]}, settings={"kind": "echo"})
"""
BREAKS = """
from contest.turns import Streams
def answer(request):
    raise SystemExit("no memory left")
Streams.taken().serve(answer, settings={})
"""


async def test_an_engine_is_asked_again_and_again() -> None:
    """What its libraries print is no answer."""
    async with EngineProcess.start("echo", Command([sys.executable, "-c", ECHO])) as engine:
        assert engine.settings == {"kind": "echo"}
        assert [await engine.ask({"word": word}) for word in ("one", "two")] == [{"heard": "one"}, {"heard": "two"}]


async def test_an_engine_that_breaks_in_its_turn_says_why() -> None:
    async with EngineProcess.start("breaking", Command([sys.executable, "-c", BREAKS])) as engine:
        with pytest.raises(UnavailableError, match=r"breaking ended with exit code 1; its last words:\nno memory left"):
            await engine.ask({})


async def test_an_engine_that_does_not_start_says_why() -> None:
    command = Command([sys.executable, "-c", "raise SystemExit('no model there')"])
    with pytest.raises(UnavailableError, match="no model there"):
        async with EngineProcess.start("missing", command):
            pytest.fail("it did not start")
