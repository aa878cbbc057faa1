"""Stands in for the cloud."""

from fakes.stand_ins.service import run

run("cloud")
