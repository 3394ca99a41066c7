"""CRC32C (Castagnoli), the checksum of column rows, log records and shard indexes."""

from __future__ import annotations

from typing import Any

import google_crc32c
import numpy as np

__all__ = ["crc32c", "crc32c_each", "extend_crc32c"]


def crc32c(data: bytes | np.ndarray[Any, Any]) -> int:
    """CRC32C of bytes or of a C-contiguous array's bytes."""
    return int(google_crc32c.value(data))


def crc32c_each(data: bytes, stride: int, length: int) -> np.ndarray[Any, Any]:
    """CRC32C of ``length`` bytes at every whole ``stride`` of bytes, uint32."""
    value = google_crc32c.value
    starts = range(0, len(data) - stride + 1, stride)
    return np.array([value(data[at : at + length]) for at in starts], np.uint32)


def extend_crc32c(checksum: int, data: bytes) -> int:
    """CRC32C of some bytes and then ``data``, from that of the former."""
    return int(google_crc32c.extend(checksum, data))
