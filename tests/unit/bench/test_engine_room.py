"""Room as words of a command line."""

import argparse

from contest.room import Room, add_room


def test_an_engine_reads_what_it_was_told() -> None:
    room = Room(max_sequences=16, max_seq_tokens=1025, max_prefill_tokens=2048)
    parser = argparse.ArgumentParser()
    add_room(parser)
    assert Room.of(parser.parse_args(room.words)) == room
