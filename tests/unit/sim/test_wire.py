"""The link of the simulator: messages arrive when frames sent one by one would have."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from edgeweave.interleave.nouns import Lane
from edgeweave.sim.events import Events
from edgeweave.sim.wire import Direction

FRAME_BYTES = 10
DELAY_US = 1000


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a unit, sent at a time."""

    at_us: int
    lane: Lane
    unit: int
    num_bytes: int


@dataclass(slots=True)
class Wire:
    """A direction of one byte a microsecond, and when each unit arrived at its far end."""

    events: Events = field(default_factory=Events)
    arrived_us: dict[int, int] = field(default_factory=dict)
    direction: Direction = field(init=False)

    def __post_init__(self) -> None:
        self.direction = Direction(self.events, DELAY_US, 1.0, self._arrive, FRAME_BYTES)

    def send(self, *messages: Message) -> None:
        """Plan to send `messages`."""
        for message in messages:
            self.events.at(message.at_us, partial(self._send, message))

    def ends_us(self) -> dict[int, int]:
        """Let everything happen; return when the last byte of each unit left."""
        self.events.run()
        return {unit: at_us - DELAY_US for unit, at_us in self.arrived_us.items()}

    def _send(self, message: Message) -> None:
        self.direction.send(message.lane, message, num_bytes=message.num_bytes)

    def _arrive(self, message: Any) -> None:
        self.arrived_us[message.unit] = self.events.now_us


def frame_by_frame(messages: Sequence[Message]) -> dict[int, int]:
    """Return when the last byte of each unit leaves if each frame is looked at, decode that is there going first."""
    left = {message.unit: message.num_bytes for message in messages}
    ends_us: dict[int, int] = {}
    now_us = 0
    while left:
        open_messages = [message for message in messages if message.unit in left]
        here = [message for message in open_messages if message.at_us <= now_us]
        if not here:
            now_us = min(message.at_us for message in open_messages)
            continue
        message = min(here, key=lambda each: (each.lane is Lane.PREFILL, each.at_us, each.unit))
        sent = left[message.unit] if message.lane is Lane.DECODE else min(FRAME_BYTES, left[message.unit])
        now_us += sent
        left[message.unit] -= sent
        if not left[message.unit]:
            ends_us[message.unit] = now_us
            del left[message.unit]
    return ends_us


SENDS = st.lists(st.tuples(st.integers(0, 200), st.sampled_from(Lane), st.integers(1, 60)), max_size=12)


@given(sends=SENDS)
def test_messages_leave_as_if_each_frame_were_an_event(sends: list[tuple[int, Lane, int]]) -> None:
    """However decode and prefill meet, nothing leaves earlier or later than frame by frame."""
    ordered = sorted(sends, key=lambda send: send[0])
    messages = [Message(at_us, lane, unit, num_bytes) for unit, (at_us, lane, num_bytes) in enumerate(ordered)]
    # What is sent at the moment when a frame ends is there before the next one is chosen.
    wire = Wire()
    wire.send(*messages)
    assert wire.ends_us() == frame_by_frame(messages)


def test_decode_waits_for_one_frame_and_delays_the_rest() -> None:
    """Prefill of 40 bytes is cut after its second frame by a decode message of 5."""
    wire = Wire()
    wire.send(Message(0, Lane.PREFILL, 1, 40), Message(13, Lane.DECODE, 2, 5))
    assert wire.ends_us() == {2: 25, 1: 45}


def test_a_dropped_unit_leaves_the_link_to_the_next_one_after_its_frame() -> None:
    """What waits of it is forgotten, and what is being sent ends with its frame; neither arrives."""
    wire = Wire()
    units = [Message(0, Lane.PREFILL, 1, 40), Message(0, Lane.PREFILL, 1, 30), Message(0, Lane.PREFILL, 2, 20)]
    wire.send(*units)
    wire.events.at(13, lambda: wire.direction.drop(Lane.PREFILL, 1))
    assert wire.ends_us() == {2: 40}
