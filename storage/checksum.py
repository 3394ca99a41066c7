"""CRC32C (Castagnoli), the checksum of column rows, log records and shard indexes."""

from __future__ import annotations

from typing import Any

import google_crc32c
import numpy as np

__all__ = ["crc32c", "extend_crc32c"]


def crc32c(data: bytes | np.ndarray[Any, Any]) -> int:
    """CRC32C of bytes or of a C-contiguous array's bytes."""
    return int(google_crc32c.value(data))


def extend_crc32c(checksum: int, data: bytes) -> int:
    """CRC32C of some bytes and then ``data``, from that of the former."""
    return int(google_crc32c.extend(checksum, data))
