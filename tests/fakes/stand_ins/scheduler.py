"""Stands in for the scheduler."""

from fakes.stand_ins.service import run

run("scheduler")
