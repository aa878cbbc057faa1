"""The command line of the bench."""

import pytest

from weaving.campaign import round_order
from weaving.command import parse
from weaving.places import Place
from weaving.variants import CENTRALIZED, SPLIT


def test_without_options_the_emulated_engines_are_measured_in_full() -> None:
    wanted = parse([])
    assert wanted.engines == ("emulated",)
    assert wanted.loads == ("A", "B", "prefill", "decode", "C")
    assert wanted.plans == ("serial", "1p1d", "2p1d", "adaptive")
    assert [str(place) for place in wanted.places] == ["0 km", "500 km", "1,000 km", "3,000 km", "10,000 km"]


def test_mutual_tls_is_one_place_more() -> None:
    wanted = parse(["--km", "0", "--tls"])
    assert wanted.places == (Place(0.0), Place(1000.0, has_tls=True))
    assert str(wanted.places[1]) == "1,000 km, TLS"


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
