"""What `bench/weave.py` is made of: loads, runs of real meshes, bounds, tables and plots.

Knows how the split is measured against one place. Nothing of edgeweave depends on it.
"""
