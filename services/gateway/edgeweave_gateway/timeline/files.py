"""The files of the page: its own, and the scripts of the library that draws.

Knows where each lies. The library is found where its Python package is installed, and is not imported: its scripts
are all that the page needs, and no other host is asked for them.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from edgeweave.errors import UnavailableError

PAGE = "timeline.html"
_STATIC = Path(__file__).parent / "static"
_LIBRARY = Path("server/static/js")
_SCRIPTS = ("bokeh.min.js", "bokeh-gl.min.js", "bokeh-api.min.js")
"""BokehJS, its WebGL backend, which draws 100,000 spans in a moment, and its interface for scripts."""


def page_files() -> Mapping[str, Path]:
    """Return all files of the page by their names in its addresses.

    Raises:
        UnavailableError: the library is not installed.
    """
    spec = find_spec("bokeh")
    if spec is None or not spec.submodule_search_locations:
        raise UnavailableError("the timeline is drawn by bokeh, which is not installed; run: pip install 'bokeh>=3.9'")
    library = Path(spec.submodule_search_locations[0]) / _LIBRARY
    return {path.name: path for path in _STATIC.iterdir()} | {name: library / name for name in _SCRIPTS}
