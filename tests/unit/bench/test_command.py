"""The command line of the bench."""

import pytest

from weaving.campaign import round_order
from weaving.command import parse
from weaving.places import Place
from weaving.suites import SUITES, Part
from weaving.variants import CENTRALIZED, SPLIT


def test_without_options_the_emulated_engines_are_measured_in_full() -> None:
    (part,) = parse([]).parts
    assert part.engines == "emulated"
    assert part.loads == ("A", "B", "prefill", "decode", "C")
    assert part.plans == ("serial", "1p1d", "2p1d", "adaptive", "apart")
    assert [str(place) for place in part.places] == ["0 km", "500 km", "1,000 km", "3,000 km", "10,000 km"]


def test_options_narrow_what_is_measured() -> None:
    words = ["--engines", "real", "embedded", "--loads", "B", "--km", "0", "--plans", "2p1d"]
    assert parse(words).parts == tuple(Part(name, ("B",), (0.0,), ("2p1d",)) for name in ("real", "embedded"))


def test_mutual_tls_is_one_place_more() -> None:
    (part,) = parse(["--km", "0", "--tls"]).parts
    assert part.places == (Place(0.0), Place(1000.0, has_tls=True))
    assert str(part.places[1]) == "1,000 km, TLS"


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_measures_each_load_of_each_engine_once(name: str) -> None:
    """A second table of the same load would overwrite the first."""
    tables = [(part.engines, load) for part in parse(["--suite", name]).parts for load in part.loads]
    assert len(tables) == len(set(tables))
    assert {("emulated", "C"), ("real", "A"), ("real", "B")} <= set(tables)


def test_a_suite_is_not_narrowed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--suite", "short", "--loads", "A"])
    assert "--suite short says what is measured; leave out --engines" in capsys.readouterr().err


def test_the_command_is_shown_without_files_of_this_machine() -> None:
    wanted = parse(["--json", "/a/b.json", "--loads", "A", "B", "--out=/c", "--cache", "/d", "--pairs", "3"])
    assert wanted.shown == "bench/weave.py --loads A B --pairs 3"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--loads", "D"], "invalid choice: 'D'"),
        (["--km", "-1"], "-1 is not a distance; give kilometres, at least 0"),
        (["--km", "nan"], "nan is not a distance"),
        (["--pairs", "0"], "0 is too few; give at least 1"),
        (["--repeats", "0"], "0 is too few; give at least 1"),
    ],
)
def test_what_is_wrong_is_said(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(words)
    assert message in capsys.readouterr().err


def test_every_other_round_goes_backwards() -> None:
    variants = [CENTRALIZED[0], SPLIT["serial"], SPLIT["adaptive"]]
    assert round_order(variants, number=0) == variants
    assert round_order(variants, number=1) == variants[::-1]
