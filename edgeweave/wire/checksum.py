"""CRC-32C of a payload.

Knows that the C library takes `bytes` only: a view is read through pieces that stay in the cache, never copied whole.
"""

from google_crc32c import extend

_PIECE_BYTES = 64 * 1024


def crc32c(payload: bytes | memoryview) -> int:
    """Return the CRC-32C of `payload`."""
    crc = 0
    for start in range(0, len(payload), _PIECE_BYTES):
        crc = extend(crc, bytes(payload[start : start + _PIECE_BYTES]))
    return crc
