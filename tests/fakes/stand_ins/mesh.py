"""What runs as which service in a mesh of stand-ins."""

MODULES = {name: f"fakes.stand_ins.{name}" for name in ("cloud", "edge", "scheduler", "gateway")}
