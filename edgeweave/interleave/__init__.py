"""The heart of edgeweave: decision functions and the three cores.

Nothing here does I/O, reads a clock, starts a thread, or imports torch or grpc. The same code runs in the engines,
in the scheduler's replay, in the simulator and in the property tests.
"""
