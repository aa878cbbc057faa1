"""When frames of the prefill lane may leave, and what the ends of a lane learn of the path between them."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeweave.clock import ManualClock
from edgeweave.rpc.arrivals import Arrivals
from edgeweave.rpc.pace import MOST_UNSENT_BYTES, Pace
from edgeweave.rpc.pacing import Pacing, rate_of
from edgeweave.rpc.path_rate import PathRate
from edgeweave.wire.frames import WARM_UP, Arrived, Frame

MB = 1_000_000
FRAME_BYTES = 250_000
GBIT_10 = 1250 * MB
NUM_FRAMES = 80  # 20 MB


def frames(unit: int, num_frames: int = NUM_FRAMES) -> list[Frame]:
    """Return the frames of a unit, one row each."""
    payload = bytes(FRAME_BYTES)
    return [Frame(unit, row, row + 1, num_frames, payload=payload) for row in range(num_frames)]


@given(st.lists(st.integers(0, 1200), min_size=200, max_size=200), st.sampled_from([100 * MB, 500 * MB, GBIT_10]))
def test_the_rate_holds_however_late_a_timer_is(lateness_us: list[int], bytes_per_s: int) -> None:
    """A loop that wakes up to 1.2 ms late sends no slower than the rate, and never further ahead than the credit."""
    pace, now_us, num_bytes = Pace(), 10_000_000, 0
    begin_us = now_us
    for late_us in lateness_us:
        if wait_us := pace.wait_us(now_us=now_us):
            now_us += wait_us + late_us
        pace.spend(FRAME_BYTES, bytes_per_s=bytes_per_s, now_us=now_us)
        num_bytes += FRAME_BYTES
        ahead_bytes = num_bytes - bytes_per_s * (now_us - begin_us) / 1e6
        assert ahead_bytes <= max(MOST_UNSENT_BYTES, FRAME_BYTES + 1.25e-3 * bytes_per_s) + 1
    behind_us = (now_us - begin_us) - num_bytes * 1e6 / bytes_per_s
    assert behind_us <= max(lateness_us)


@pytest.mark.parametrize(("bytes_per_s", "expected"), [(500 * MB, 4), (100 * MB, 1), (GBIT_10, 7)])
def test_time_that_was_not_used_is_credit_up_to_the_bound(bytes_per_s: int, expected: int) -> None:
    """After an hour of silence about a megabyte leaves at once, and not an hour's worth; less on a slow link."""
    pace = Pace()
    pace.spend(FRAME_BYTES, bytes_per_s=bytes_per_s, now_us=0)
    num_at_once = 0
    while not pace.wait_us(now_us=3_600_000_000):
        pace.spend(FRAME_BYTES, bytes_per_s=bytes_per_s, now_us=3_600_000_000)
        num_at_once += 1
    assert num_at_once == expected


def test_a_unit_is_measured_from_its_first_frame_to_its_last() -> None:
    """What the first frame waited for, before the unit was on its way, is no matter of the path."""
    arrivals = Arrivals()
    for frame in frames(7):
        arrivals.add(frame, now_us=1_000_000 + 200 * frame.row_start)
    assert arrivals.take() == Arrived(7, GBIT_10)


def test_what_came_is_told_once_when_the_unit_is_whole() -> None:
    arrivals = Arrivals()
    for number, frame in enumerate(frames(7)):
        assert arrivals.take() is None
        arrivals.add(frame, now_us=1000 + number * 200)
    assert arrivals.take() == Arrived(7, GBIT_10)
    assert arrivals.take() is None, "told once"


def test_what_is_small_or_not_whole_is_not_measured() -> None:
    """A few frames say more about timers than about the path; a unit that was dropped on the way has no end."""
    arrivals = Arrivals()
    for frame in [*frames(1, 9), *frames(2)[:60], *frames(3, 9)]:
        arrivals.add(frame, now_us=frame.row_start * 200)
    assert arrivals.take() is None


def told(rate: PathRate, unit: int, *, path: int) -> int:
    """Send a unit over a path of some rate and tell how it came; return what it was sent at."""
    sent_at = rate.bytes_per_s_now()
    assert sent_at is not None
    rate.sent(unit, is_gapless=True)
    rate.learn(Arrived(unit, min(sent_at, path)))
    return sent_at


def settled(path: int) -> PathRate:
    """Return what is known after enough units over a path of some rate, the last of them a probe."""
    rate = PathRate()
    rate.learn(Arrived(WARM_UP, path))
    for unit in range(1, 11):
        told(rate, unit, path=path)
    return rate


def test_nine_tenths_of_the_path_are_used_and_now_and_then_a_unit_looks_for_more() -> None:
    """It looks soon again until five units have shown what the path carries, then rarely."""
    rate = PathRate()
    assert rate.bytes_per_s_now() is None, "nothing is known yet"
    rate.learn(Arrived(WARM_UP, 1000))
    sent_at = [told(rate, unit, path=1000) for unit in range(1, 40)]
    assert sent_at == [2000, *[900, 900, 1100] * 4, *[*[900] * 12, 1100] * 2]


def test_a_path_that_is_faster_than_was_measured_is_soon_used() -> None:
    """A warm-up that was disturbed, here to an eighth of the path, costs four chunks, not the session."""
    rate = PathRate()
    rate.learn(Arrived(WARM_UP, 100))
    assert [told(rate, unit, path=800) for unit in range(1, 6)] == [200, 400, 800, 1600, 720]


def test_a_path_that_becomes_faster_is_used_as_far_as_it_goes() -> None:
    """A probe that came through is followed by another soon."""
    rate = settled(1000)
    for unit in range(11, 50):
        told(rate, unit, path=1000)
    for unit in range(50, 120):
        told(rate, unit, path=1500)
    assert rate.bytes_per_s == 1500


def test_a_path_that_becomes_slower_is_noticed_when_most_probes_say_so() -> None:
    """Units that are late bring the next probe near."""
    rate = settled(1000)
    for unit in range(11, 22):
        told(rate, unit, path=400)
    assert rate.bytes_per_s == 400


def test_one_probe_that_was_late_does_not_make_the_path_slow() -> None:
    """The host was busy for a moment, at whichever end."""
    rate = settled(1000)
    while rate.bytes_per_s_now() == 900:
        told(rate, 11, path=1000)
    assert told(rate, 12, path=300) == 1100
    assert rate.bytes_per_s_now() == 900


def test_a_warm_up_of_a_known_link_shows_no_more_than_how_fast_it_came() -> None:
    """It is not paced, so it is not taken for a unit that fell behind; the next ones look for the rest of the link."""
    rate = rate_of("auto", link_gbit=10)
    rate.sent(WARM_UP, is_gapless=True)
    rate.learn(Arrived(WARM_UP, 300 * MB))
    assert isinstance(rate, PathRate)
    assert [told(rate, unit, path=2000 * MB) for unit in range(1, 4)] == [600 * MB, 1125 * MB, 1125 * MB]


def test_an_engine_that_is_slow_is_not_taken_for_a_slow_path() -> None:
    """A unit with gaps counts only where it was faster than what is known."""
    rate = PathRate()
    rate.learn(Arrived(WARM_UP, 1000))
    for unit in range(1, 50):
        rate.sent(unit, is_gapless=False)
        rate.learn(Arrived(unit, 50))
    assert rate.bytes_per_s == 1000
    rate.learn(Arrived(50, 1200))
    assert rate.bytes_per_s == 1200


def test_a_rate_that_was_set_is_kept_and_off_is_no_rate() -> None:
    fixed, off = rate_of("8"), rate_of("off")
    for rate in (fixed, off):
        rate.learn(Arrived(1, 5))
        rate.sent(1, is_gapless=True)
    assert fixed.bytes_per_s_now() == 1000 * MB
    assert rate_of("8", link_gbit=4).bytes_per_s_now() == 1000 * MB
    assert off.bytes_per_s_now() is None


def test_a_link_that_is_known_bounds_what_is_learned() -> None:
    """Nine tenths of it are used at most, from the first unit on, also when a unit looks for more."""
    rate = rate_of("auto", link_gbit=10)
    assert rate.bytes_per_s_now() == 1125 * MB
    rate.learn(Arrived(WARM_UP, 2000 * MB))
    assert rate.bytes_per_s_now() == 1125 * MB
    slow = rate_of("auto", link_gbit=10)
    slow.learn(Arrived(WARM_UP, 400 * MB))
    assert slow.bytes_per_s_now() == 800 * MB


@dataclass
class End:
    """One end of a path, with frames on their way to it."""

    pacing: Pacing
    coming: list[tuple[int, Frame]] = field(default_factory=list)


@dataclass
class Path:
    """Two ends and a path of some rate between them, each under a clock that jumps from event to event."""

    bytes_per_s: int
    clock: ManualClock = field(default_factory=ManualClock)
    far_clock: ManualClock = field(default_factory=ManualClock)
    free_us: int = 0
    longest_queue_us: int = 0

    def __post_init__(self) -> None:
        self.near = End(Pacing(rate_of("auto"), clock=self.clock))
        self.far = End(Pacing(rate_of("auto"), clock=self.far_clock))

    def send(self, unit: int) -> None:
        """Send a unit from the near end, and one frame back when it is there."""
        for frame in frames(unit):
            self.clock.advance(self.near.pacing.wait_us(frame))
            leaving = self.near.pacing.leaving(frame)
            self.free_us = max(self.free_us, self.clock.now_us()) + FRAME_BYTES * 1_000_000 // self.bytes_per_s
            self.longest_queue_us = max(self.longest_queue_us, self.free_us - self.clock.now_us())
            self.far.coming.append((self.free_us, leaving))
        self.near.pacing.ran_dry()
        self._arrive()

    def _arrive(self) -> None:
        for at_us, frame in self.far.coming:
            self.far_clock.advance(at_us - self.far_clock.now_us())
            self.far.pacing.arrived(frame)
        self.far.coming.clear()
        self.clock.advance(max(0, self.far_clock.now_us() - self.clock.now_us()))
        self.near.pacing.arrived(self.far.pacing.leaving(frames(1, 1)[0]))


def test_both_ends_together_keep_the_queue_in_front_of_the_link_short() -> None:
    """The warm-up queues a whole chunk, 40 ms of this link; all others queue a megabyte and the probe."""
    path = Path(500 * MB)
    path.send(WARM_UP)
    assert path.longest_queue_us > 35_000
    path.send(1)  # shows that the path is no faster
    path.send(2)
    path.longest_queue_us = 0
    for unit in range(3, 40):
        path.send(unit)
    assert path.longest_queue_us <= (MOST_UNSENT_BYTES + 0.1 * NUM_FRAMES * FRAME_BYTES) / 500
    begin_us = path.clock.now_us()
    for unit in range(40, 48):
        path.send(unit)
    sent_bytes_per_s = 8 * NUM_FRAMES * FRAME_BYTES * 1e6 / (path.clock.now_us() - begin_us)
    assert sent_bytes_per_s > 0.85 * path.bytes_per_s
