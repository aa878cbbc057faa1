"""The timeline page: what each engine did with every second of the last minutes, as a picture.

Knows paths, files and the shape in which a browser gets spans. Does not know how spans are made.
"""

from edgeweave_gateway.timeline.paths import SPANS_PATH, TimelinePaths

__all__ = ["SPANS_PATH", "TimelinePaths"]
