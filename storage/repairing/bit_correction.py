"""A log in which single bits were turned over, put right.

A CRC32C tells any one flipped bit in so few bytes from every other: exactly one flip back makes
the checksum right again. Anything worse stays as it is. What is put right here is still held
against the records around it, and against the rows, whose checksums it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from storage.checksum import crc32c
from storage.errors import CorruptStoreError, FormatVersionError
from storage.log_header import LogHeader
from storage.log_record import good_records

__all__ = ["corrected_log"]

_FIXED = 24
"""Bytes of a header before its text, its size among them."""
_LONGEST = 2**20
_MOST = 1000
"""Records that are tried: where more are wrong, it was no bit that flipped."""


def corrected_log(data: bytes, path: Path) -> bytes:
    """The log's content with every header or record of one wrong bit put right."""
    data = _with_header(data, path)
    try:
        header, size = LogHeader.decode(data, path)
    except (CorruptStoreError, FormatVersionError):
        return data
    slots, whole = good_records(data[size:], len(header.columns))
    parts = [slot.tobytes() for slot in slots]
    wrong = (place for place, is_whole in enumerate(whole) if not is_whole and any(parts[place]))
    for place in islice(wrong, _MOST):
        parts[place] = _corrected(parts[place], _is_record)
    return data[:size] + b"".join(parts) + data[size + slots.nbytes :]


def _with_header(data: bytes, path: Path) -> bytes:
    """The log with its header put right, if that can be."""
    fixed, text = data[:_FIXED], data[_FIXED:_LONGEST]
    head = _corrected(fixed, lambda tried: _is_header(tried + text, path))
    if head == fixed:  # then the size in it is right
        size = min(int.from_bytes(data[12:16], "little"), _LONGEST)
        fixed = data[:size]
        head = _corrected(fixed, lambda tried: _is_header(tried, path))
    return head + data[len(fixed) :]


def _corrected(data: bytes, is_right: Callable[[bytes], bool]) -> bytes:
    """The bytes, or those with one bit turned over that are right."""
    if is_right(data):
        return data
    return next((tried for tried in _flips(data) if is_right(tried)), data)


def _flips(data: bytes) -> Iterator[bytes]:
    changed = bytearray(data)
    for at in range(len(data)):
        for bit in range(8):
            changed[at] ^= 1 << bit
            yield bytes(changed)
            changed[at] ^= 1 << bit


def _is_record(data: bytes) -> bool:
    return crc32c(data[:-4]) == int.from_bytes(data[-4:], "little")


def _is_header(data: bytes, path: Path) -> bool:
    try:
        LogHeader.decode(data, path)
    except (CorruptStoreError, FormatVersionError):
        return False
    return True
