from __future__ import annotations

import numpy as np

from storage.checksum import crc32c


def test_known_answer() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_read_only_rows_and_bytes_agree() -> None:
    rows = np.arange(24, dtype=np.float64).reshape(4, 6)[1:3]
    rows.flags.writeable = False
    assert crc32c(rows) == crc32c(rows.tobytes())
    assert crc32c(np.array([True, False])) == crc32c(b"\x01\x00")
