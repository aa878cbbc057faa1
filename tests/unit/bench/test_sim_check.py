"""The comparison of the simulator with what was measured."""

import sys
from pathlib import Path

import pytest

import sim_check
from sim_check import Pair, main, pairs_of, wrong_orders

RESULTS = {
    "tables": [
        {"engines": "real", "load": "A", "one_place": [], "split": []},
        {
            "engines": "emulated",
            "load": "decode",
            "one_place": [{"variant": "alternate", "tokens_per_s": 560.0}],
            "split": [
                {
                    "place": {"distance_km": 1000.0, "has_tls": False},
                    "variant": "serial",
                    "tokens_per_s": 400.0,
                    "decode_return_ms": 14.0,
                    "lane_gbit": 4.0,
                }
            ],
        },
    ]
}


def pair(plan: str, measured: float, simulated: float) -> Pair:
    """Return a cell at one place."""
    return Pair("A", "0 km", plan, measured, simulated)


def test_each_emulated_cell_is_simulated() -> None:
    """Cells of other engines are left out, and what both ends take comes from the measured return of a step."""
    one_place, split = pairs_of(RESULTS)
    assert (one_place.place, split.place) == ("one place", "1,000 km")
    assert one_place.simulated == pytest.approx(560, rel=0.05)
    assert split.simulated == pytest.approx(16e3 / (28.1 + 14.0), rel=0.06)


def test_an_order_counts_only_where_plans_differ_enough() -> None:
    """Two plans that were measured within 3 % of each other have no order."""
    far = [pair("a", 100, 90), pair("b", 80, 95)]
    assert wrong_orders(far) == ["load A, 0 km: a and b"]
    assert wrong_orders([pair("a", 100, 90), pair("b", 98, 95)]) == []
    assert wrong_orders([pair("a", 100, 90), pair("b", 80, 85)]) == []


def test_what_is_off_ends_with_code_1(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """More than a tenth is too much."""
    path = tmp_path / "figures.json"
    path.write_text("{}", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["sim_check.py", str(path)])
    monkeypatch.setattr(sim_check, "pairs_of", lambda _results: iter([pair("a", 100, 95)]))
    assert main() == 0
    monkeypatch.setattr(sim_check, "pairs_of", lambda _results: iter([pair("a", 100, 85)]))
    assert main() == 1
