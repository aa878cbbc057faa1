"""`python -m edgeweave.cli`: the `edgeweave` command."""

from edgeweave.cli import main

main()
