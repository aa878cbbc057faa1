"""What `bench/engine.py` is made of: engines that do the same work on one core, in turns, and how they compare.

Knows how an engine in one place is measured beside others. Nothing of edgeweave depends on it. What an engine of
another environment imports (`turns`, `vllm_offline`) needs the standard library alone.
"""
