"""Spans as the files that viewers of traces open. Pure: spans in, JSON values out."""
