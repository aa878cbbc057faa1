"""Stands in for the edge."""

from fakes.stand_ins.service import run

run("edge")
