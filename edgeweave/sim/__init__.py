"""A discrete-event simulator of the whole mesh: the same three cores, under a virtual clock.

Knows hardware as times, a link as delay and rate, and load as requests. Nothing here waits, computes or sends: an hour
of traffic takes seconds. What it leaves out is said in `edgeweave.sim.mesh`.
"""
