"""Accounts of key-value memory: which blocks belong to which sequence.

Knows numbers only; the tensors behind the blocks are the engine's (`edgeweave.model`). Imports no torch.
"""

from edgeweave.kv.blocks import BlockRun, BlockTable, Move, OutOfBlocksError

__all__ = ["BlockRun", "BlockTable", "Move", "OutOfBlocksError"]
