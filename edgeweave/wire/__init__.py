"""The border between nouns and protobuf: messages of the task streams, frames of the lanes.

Knows both sides of each message. Does not know channels, servers or who sends what when.
"""
