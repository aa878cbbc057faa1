"""edgeweave: large-model inference split by layers between a site and a distant cloud.

This package is the library that the four services share, and the client SDK. See `docs/lifecycle.md` for the
way of one request, and `docs/glossary.md` for the words.
"""

__version__ = "0.1.0"
