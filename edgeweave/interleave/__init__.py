"""The heart of edgeweave: decision functions and the three cores.

Nothing here does I/O, reads a clock, starts a thread, or imports torch or grpc. Engines decide with
it, the scheduler replays it, and tests run whole meshes of it under a clock that they move.
"""
