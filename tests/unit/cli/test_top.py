"""`edgeweave top`: what happened between two states, and how it looks on 80 columns."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from edgeweave.cli import run
from edgeweave.cli.site_address import dialled
from edgeweave.cli.top import TopOptions
from edgeweave.cli.top_figures import figures
from edgeweave.cli.top_interval import engine_words, interval_between
from edgeweave.cli.top_view import interval_view, waiting_view
from edgeweave.client import MeshState
from edgeweave.errors import InvalidSettingsError
from edgeweave.interleave.accounts import Side
from edgeweave.interleave.nouns import BubbleCause
from edgeweave.interleave.request_totals import RequestEnd
from edgeweave.settings import TlsSettings
from fakes.mesh_states import AFTER, BEFORE, DOWN

TARGET = "scheduler.site:50050"
PAGE = Path(__file__).parents[3] / "docs" / "bubbles.md"
PICTURE = """\
mesh       scheduler.site:50050, ready, session 7, the last 2.0 s
plan       adaptive (3): 2 chunks, 1 step of 64 rows at most, next head first,
           step back in 11.2 ms, grace up to 10.0 ms, filled to 32 rows at 0.5
           ms each
requests   12 running, 3 waiting, 1 releasing; 2 preempted, 2 in all
ended      1,110 length, 2 cancelled; since the start 1,130 length, 2 cancelled
in flight  2 chunks, 1.0 steps of 6.0 rows; 9 sequences through prefill
rates      8,231 tokens/s in, 1,140 out; 11.0 chunks/s, 50.0 steps/s
link       round trip 11.2 ms, 90.0% of it hidden; 1,000 Mbit/s up, 900 down

time of an engine             edge, serves  cloud, serves
busy                                 25.0%          90.0%
bubble, grace                         0.0%           1.5%
bubble, await_task                    1.0%           1.0%
bubble, await_decode_hidden          74.0%           6.0%
bubble, await_prefill_hidden          0.0%           1.0%
bubble, link                          0.0%           0.5%
idle                                  0.0%           0.0%
KV used                              25.0%          60.0%

the last minute                   p50      p90      p99  requests
queue                          0.9 ms  12.4 ms   150 ms     1,200
time to first token            182 ms   401 ms   12.3 s     1,190
time per output token         21.3 ms  24.9 ms  31.0 ms       840
"""
SCREEN_LINES = 24


def shown(view: RenderableType) -> str:
    """Return the lines that are printed on a terminal of 80 columns, without the blanks at their ends."""
    output = io.StringIO()
    Console(file=output, width=80).print(view)
    return "".join(f"{line.rstrip()}\n" for line in output.getvalue().splitlines())


def picture(before: MeshState, after: MeshState) -> str:
    """Return what `top` shows of the time between two states."""
    return shown(interval_view(interval_between(before, after), target=TARGET))


# ---- the difference


def test_an_interval_is_what_grew_since_the_first_state() -> None:
    """Not since the start: sums of before count for nothing, and rates are by the scheduler's clock."""
    interval = interval_between(BEFORE, AFTER)
    cloud = interval.engines[Side.CLOUD]
    assert (interval.wall_us, cloud.busy_us, cloud.idle_us) == (2_000_000, 1_800_000, 0)
    assert cloud.bubbles_us[BubbleCause.AWAIT_DECODE_HIDDEN] == 120_000
    assert (interval.num_output_tokens, interval.num_prefill_tokens) == (2_280, 16_462)
    assert (interval.num_steps, interval.num_chunks, interval.per_s(interval.num_steps)) == (100, 22, 50.0)
    assert (interval.ends[RequestEnd.LENGTH], interval.ends[RequestEnd.CANCELLED]) == (1_110, 2)


def test_the_hidden_share_is_that_of_the_interval() -> None:
    """The cloud's bubbles for the link and for hidden states, against what came from outside meanwhile; not grace."""
    interval = interval_between(BEFORE, AFTER)
    assert interval.hidden_share == pytest.approx(1 - (120_000 + 20_000 + 10_000) / 1_500_000)
    assert interval_between(BEFORE, replace(AFTER, outside_us=BEFORE.outside_us)).hidden_share is None
    assert interval_between(BEFORE, replace(AFTER, outside_us=BEFORE.outside_us + 1)).hidden_share == 0.0


def test_steps_in_flight_are_their_time_by_the_time_that_passed() -> None:
    """One step that goes round without a pause is one; its rows are the mean of those that ran."""
    interval = interval_between(BEFORE, AFTER)
    assert interval.steps_in_flight == pytest.approx((2_640_000 - 700_000) / 2_000_000)
    assert interval.rows_per_step == (50 * 8 + 50 * 4) / 100


@pytest.mark.parametrize("side", list(Side))
def test_busy_bubbles_and_idle_are_the_interval(side: Side) -> None:
    """To 0.1 %, as the accounts promise; here nothing was open at either end, and it is exact."""
    use = interval_between(BEFORE, AFTER).engines[side]
    assert use.counted_us == use.reported_us == 2_000_000
    assert sum(use.share(us) or 0 for us in (use.busy_us, use.idle_us, *use.bubbles_us.values())) == pytest.approx(1.0)


def test_a_session_that_began_counts_from_its_beginning() -> None:
    """The sums of the one before are gone with it, and are not taken off."""
    next_session = replace(AFTER, session=8, num_steps_done=3, num_chunks_done=2, num_prefill_tokens=40, steps_us=100)
    interval = interval_between(BEFORE, replace(next_session, outside_us=70))
    assert (interval.num_steps, interval.num_chunks, interval.num_prefill_tokens) == (3, 2, 40)
    assert (interval.steps_us, interval.outside_us, interval.engines[Side.CLOUD].busy_us) == (100, 70, 4_800_000)


def test_without_a_session_there_are_no_engines_and_no_negative_figures() -> None:
    """Its number may still be told; its sums are not."""
    interval = interval_between(AFTER, DOWN)
    assert (interval.engines, interval.hidden_share, interval.rows_per_step) == ({}, None, None)
    assert (interval.num_steps, interval.num_chunks, interval.num_prefill_tokens, interval.steps_us) == (0, 0, 0, 0)
    assert interval.ends == {RequestEnd.LENGTH: 0, RequestEnd.LOST: 16}


def test_an_engine_is_known_by_its_reports() -> None:
    """None at all, none since, a bubble that is longer than the interval, idle, or at work."""
    use = interval_between(BEFORE, AFTER).engines[Side.EDGE]
    nothing = replace(use, busy_us=0, bubbles_us={}, idle_us=0)
    assert engine_words(None) == "absent"
    assert engine_words(replace(nothing, reported_us=0)) == "no report"
    assert engine_words(nothing) == "one bubble"
    assert engine_words(replace(nothing, idle_us=2_000_000)) == "idle"
    assert engine_words(use) == "serves"


# ---- the picture


def test_all_of_it_fits_one_screen() -> None:
    """24 lines of 80 columns, with nothing cut off."""
    assert picture(BEFORE, AFTER) == PICTURE
    assert len(PICTURE.splitlines()) <= SCREEN_LINES
    assert "…" not in PICTURE


def test_the_page_shows_what_is_shown() -> None:
    """The picture of docs/bubbles.md is this one, and it says what each cause is."""
    page = PAGE.read_text(encoding="utf-8")
    assert PICTURE in page
    for cause in BubbleCause:
        assert f"| `{cause.name.lower()}` |" in page


def test_a_mesh_that_is_down_says_why() -> None:
    """And what is still known of requests is still shown."""
    text = picture(AFTER, DOWN)
    assert f"{TARGET}, down, the last 1.0 s: the prefill lane broke:\n" in text
    assert "           connection reset\n" in text
    assert "ended      16 lost; since the start 1,130 length, 16 lost\n" in text
    assert "edge, absent  cloud, absent\n" in text
    assert "time to first token           182 ms  182 ms  182 ms         1\n" in text
    assert "session" not in text.splitlines()[0]


def test_one_place_has_no_link() -> None:
    """There is no cloud to be absent from it."""
    before, after = replace(BEFORE, cloud=None), replace(AFTER, cloud=None)
    assert "link       none, all layers are in one place\n" in picture(before, after)


def test_lost_time_is_shown_where_there_was_any() -> None:
    """The other causes always have their line, so that the picture stands still."""
    assert AFTER.cloud is not None
    lost = {**AFTER.cloud.bubbles_us, BubbleCause.LOST: 500_000}
    after = replace(AFTER, cloud=replace(AFTER.cloud, bubbles_us=lost))
    assert "bubble, lost                          0.0%          20.0%\n" in picture(BEFORE, after)


def test_markup_in_a_reason_is_shown_as_it_is() -> None:
    """Reasons are text of others."""
    assert "[b]gone[/b]" in picture(AFTER, replace(DOWN, reason="[b]gone[/b]"))
    assert "[red]" in shown(waiting_view("no [red] answer", target="site:1"))


def test_while_there_is_nothing_to_show_it_is_said_what_is_waited_for() -> None:
    """Before the first state, and while the scheduler is away."""
    assert shown(waiting_view(None, target="site:1")) == "asks the scheduler at site:1\n"
    assert shown(waiting_view("it is gone", target="site:1")) == "it is gone\nwaits for it; Ctrl-C ends\n"


# ---- the figures


def test_figures_are_those_of_the_picture() -> None:
    """The same in one JSON object, with all causes, whatever of them occurred."""
    told = json.loads(json.dumps(figures(interval_between(BEFORE, AFTER))))
    cloud = told["engines"]["cloud"]
    assert set(cloud["bubble_shares"]) == {cause.name.lower() for cause in BubbleCause}
    shares = [cloud["busy_share"], cloud["idle_share"], *cloud["bubble_shares"].values()]
    assert sum(shares) == pytest.approx(1.0)
    assert (cloud["busy_share"], cloud["kv_share"], told["link"]["hidden_share"]) == (0.9, 0.6, pytest.approx(0.9))
    assert (told["state"], told["session"], told["reason"], told["interval_s"]) == ("ready", 7, None, 2.0)
    assert (told["plan"]["kind"], told["plan"]["max_grace_us"]) == ("adaptive", 10_000)
    assert told["requests"]["ended_in_all"] == {
        **{end.name.lower(): 0 for end in RequestEnd},
        "length": 1_130,
        "cancelled": 2,
    }
    assert told["last_minute"]["time_per_token"] == {
        "num_times": 840,
        "p50_us": 21_300,
        "p90_us": 24_900,
        "p99_us": 31_000,
    }
    assert told["tokens"]["prefill_per_s"] == 8_231
    assert told["link"]["up_bits_per_s"] == 1e9


def test_figures_of_a_mesh_that_is_down() -> None:
    """What is not known is null, and no key is missing."""
    down, up = figures(interval_between(AFTER, DOWN)), figures(interval_between(BEFORE, AFTER))
    assert (down["state"], down["session"], down["link"], down["engines"]) == ("down", None, None, {})
    assert down["reason"] == "the prefill lane broke: connection reset"
    assert down["last_minute"]["queue_time"] is None
    assert down.keys() == up.keys()


# ---- settings


def test_the_scheduler_is_found_as_the_gateway_finds_it(tmp_path: Path) -> None:
    """By flags, else variables, else the file of the site; TLS with it."""
    config = tmp_path / "site.yaml"
    tls = {name: f"{name}.pem" for name in ("ca_file", "cert_file", "key_file")}
    config.write_text(json.dumps({"common": {"tls": tls}, "gateway": {"scheduler": "file:1"}}), encoding="utf-8")
    variable = {"EDGEWEAVE_GATEWAY__SCHEDULER": "variable:1"}
    assert dialled(TopOptions(), {}).scheduler == "127.0.0.1:50050"
    assert dialled(TopOptions(config=config), {}).scheduler == "file:1"
    assert dialled(TopOptions(config=config), variable).scheduler == "variable:1"
    assert dialled(TopOptions(scheduler="flag:1", config=config), variable).scheduler == "flag:1"
    assert dialled(TopOptions(config=config), {}).tls == TlsSettings.model_validate(tls)
    flags = TopOptions(tls_ca_file=Path("a"), tls_cert_file=Path("c"), tls_key_file=Path("k"))
    assert dialled(flags, {}).tls == TlsSettings(ca_file=Path("a"), cert_file=Path("c"), key_file=Path("k"))


def test_half_of_the_tls_files_are_refused() -> None:
    """Both that are missing are named, in one go."""
    with pytest.raises(InvalidSettingsError) as refused:
        dialled(TopOptions(tls_ca_file=Path("a")), {})
    assert [line.partition(":")[0] for line in str(refused.value).splitlines()] == [
        "gateway.tls.cert_file",
        "gateway.tls.key_file",
    ]


@pytest.mark.parametrize(
    ("argv", "part"),
    [
        (["top", "--scheduler", "nowhere"], "--scheduler"),
        (["top", "--interval-s", "0"], "--interval-s"),
        (["top", "--config", "no-such-file.yaml"], "no-such-file.yaml"),
    ],
)
def test_a_mistake_is_one_line(argv: list[str], part: str, capsys: pytest.CaptureFixture[str]) -> None:
    """On standard error, with exit code 2."""
    assert run(argv) == 2
    error = capsys.readouterr().err
    assert part in error
    assert error.count("\n") == 1


def test_nobody_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """`--once` does not wait for a scheduler; its exit code tells programs."""
    assert run(["top", "--once", "--scheduler", "127.0.0.1:1"]) == 1
    assert "the scheduler at 127.0.0.1:1 does not answer" in capsys.readouterr().err
