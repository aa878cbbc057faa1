"""Stands in for the gateway."""

from fakes.stand_ins.service import run

run("gateway")
