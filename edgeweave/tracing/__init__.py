"""Spans of requests and of engines, made by the scheduler from what the engines report as numbers.

No trace context crosses the link: the cloud's part is made here, with the cloud's name on it. Knows units, bubbles and
clocks. Does not know collectors but in `otlp`, and measures nothing itself.
"""
