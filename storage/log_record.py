"""One record of a commit log: an episode, a seal, or an episode that was taken out again."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Any

import numpy as np

from storage.checksum import crc32c, crc32c_each
from storage.layout import Ending

__all__ = [
    "RECORD",
    "LogRecord",
    "RecordKind",
    "encode_record",
    "good_records",
    "impossible",
    "record_dtype",
    "take_fields",
    "with_kind",
]

_SEED_KNOWN = 1


class RecordKind(IntEnum):
    """What a record says."""

    EPISODE = 1
    SEAL = 2
    """The segment gets no more episodes."""
    VOID = 3
    """An episode that a repair took out: its rows stay in their place and count for nobody."""


# Plain numbers: an enum's members are looked up slowly, and commits are many.
_EPISODE, _SEAL, _VOID = (int(kind) for kind in RecordKind)
_FIRST_ENDING, _LAST_ENDING = int(Ending.TERMINATED), int(Ending.CUT)

RECORD = np.dtype(
    [
        ("sequence", "<u8"),
        ("ordinal", "<u4"),
        ("start", "<i8"),
        ("length", "<i8"),
        ("ending", "u1"),
        ("return", "<f8"),
        ("seed", "<u8"),
        ("seed_known", "?"),
        ("lane_episode", "<i8"),
        ("first_policy_update", "<i8"),
        ("last_policy_update", "<i8"),
        ("begin_time", "<i8"),
        ("end_time", "<i8"),
    ]
)
"""What readers get of an episode's record; times are nanoseconds since 1970."""


@lru_cache(maxsize=64)
def record_dtype(columns: int) -> np.dtype[Any]:
    """The bytes of one record in the file, for a segment of so many columns."""
    return np.dtype(
        [
            ("kind", "u1"),
            ("ending", "u1"),
            ("flags", "u1"),
            ("reserved", "u1"),
            ("ordinal", "<u4"),
            ("sequence", "<u8"),
            ("start", "<i8"),
            ("length", "<i8"),
            ("return", "<f8"),
            ("seed", "<u8"),
            ("lane_episode", "<i8"),
            ("first_policy_update", "<i8"),
            ("last_policy_update", "<i8"),
            ("begin_time", "<i8"),
            ("end_time", "<i8"),
            ("column_crc", "<u4", (columns,)),
            ("crc", "<u4"),
        ]
    )


@dataclass(frozen=True, slots=True)
class LogRecord:
    """The content of one episode's record, without its checksums' computation."""

    ordinal: int
    sequence: int
    start: int
    length: int
    ending: int
    episode_return: float
    seed: int | None
    lane_episode: int
    first_policy_update: int
    last_policy_update: int
    begin_time: int
    end_time: int
    column_crc: tuple[int, ...]


def encode_record(kind: RecordKind, record: LogRecord, columns: int) -> bytes:
    """A record's bytes, checksum included."""
    row = np.zeros(1, record_dtype(columns))
    flags = 0 if record.seed is None else _SEED_KNOWN
    checksums = np.array(record.column_crc or [0] * columns, dtype="<u4")
    row[0] = (
        kind,
        record.ending,
        flags,
        0,
        record.ordinal,
        record.sequence,
        record.start,
        record.length,
        record.episode_return,
        record.seed or 0,
        record.lane_episode,
        record.first_policy_update,
        record.last_policy_update,
        record.begin_time,
        record.end_time,
        checksums,
        0,
    )
    return _sealed(row.tobytes())


def with_kind(record: bytes, kind: RecordKind) -> bytes:
    """The same record of another kind, with its checksum."""
    return _sealed(bytes([kind]) + record[1:])


def _sealed(record: bytes) -> bytes:
    data = record[:-4]
    return data + crc32c(data).to_bytes(4, "little")


def good_records(data: bytes, columns: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The whole records in ``data`` (record_dtype), and which of them have the right checksum."""
    dtype = record_dtype(columns)
    size = dtype.itemsize
    raw = np.frombuffer(data, dtype, count=len(data) // size)
    sums = crc32c_each(data, size, size - 4)
    return raw, raw["crc"] == sums[: len(raw)]


def take_fields(target: np.ndarray[Any, Any], raw: np.ndarray[Any, Any]) -> None:
    """Fill ``target`` (RECORD) from records as they are in the file."""
    for name in RECORD.names or ():
        target[name] = raw[name] if name != "seed_known" else raw["flags"] & _SEED_KNOWN


def impossible(raw: np.ndarray[Any, Any], capacity: int) -> np.ndarray[Any, Any]:
    """Which records say what no writer says, bool: the checksum being right, a forger's."""
    seal = raw["kind"] == _SEAL
    start, length = raw["start"], raw["length"]
    fits = (start >= 0) & (start < capacity) & (length >= 1) & (length < capacity)
    fits &= start + length < capacity
    ends = (raw["ending"] >= _FIRST_ENDING) & (raw["ending"] <= _LAST_ENDING)
    known = (raw["kind"] == _EPISODE) | (raw["kind"] == _VOID)
    wrong: np.ndarray[Any, Any] = ~(seal | (known & fits & ends))
    return wrong
