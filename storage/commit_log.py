"""The commit log of a segment: the only truth about which rows count.

A header, then fixed-width records: one a closed episode, and one that seals the segment. A record
is written by one write(2) after the rows it speaks of. Readers ignore a bad tail (a write in
progress, or a writer that died); a bad record before good ones is corruption.
"""

from __future__ import annotations

import json
import os
import struct
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from storage.atomic import append_all
from storage.checksum import crc32c
from storage.errors import CorruptStoreError, FormatVersionError
from storage.layout import FORMAT_VERSION

__all__ = ["RECORD", "CommitLog", "LogAppender", "LogHeader", "LogRecord", "record_dtype"]

_MAGIC = b"SWAVELOG"
_PREFIX = struct.Struct("<8sIIII")
_EPISODE, _SEAL = 1, 2
_SEED_KNOWN = 1

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
class LogHeader:
    """What is fixed about a segment from its first byte."""

    store_uuid: str
    segment: int
    columns: list[str]
    capacity: int
    run: str
    lane: int

    def encode(self) -> bytes:
        """The header's bytes, checksum included."""
        text = json.dumps(asdict(self), separators=(",", ":")).encode()
        text += b" " * (-(_PREFIX.size + len(text)) % 64)
        size, record = _PREFIX.size + len(text), record_dtype(len(self.columns)).itemsize
        unchecked = _PREFIX.pack(_MAGIC, FORMAT_VERSION, size, record, 0)
        checksum = crc32c(unchecked + text)
        return _PREFIX.pack(_MAGIC, FORMAT_VERSION, size, record, checksum) + text

    @classmethod
    def decode(cls, data: bytes, path: Path) -> tuple[LogHeader, int]:
        """The header at the start of a log file, and its size in bytes."""
        if len(data) < _PREFIX.size or not data.startswith(_MAGIC):
            raise CorruptStoreError(
                f"{path} does not start as a commit log; restore it from a copy"
            )
        magic, version, size, record, checksum = _PREFIX.unpack_from(data)
        if version > FORMAT_VERSION:
            raise FormatVersionError(
                f"{path} is of format version {version}; this release reads up to "
                f"{FORMAT_VERSION}. Install a newer Sharpwave."
            )
        text = data[_PREFIX.size : size]
        if checksum != crc32c(_PREFIX.pack(magic, version, size, record, 0) + text):
            raise CorruptStoreError(f"the header of {path} fails its checksum; restore a copy")
        return cls(**json.loads(text)), int(size)


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


def _encode(kind: int, record: LogRecord, columns: int) -> bytes:
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
    data = row.tobytes()[:-4]
    return data + crc32c(data).to_bytes(4, "little")


class LogAppender:
    """Appends records to one log; holds its descriptor open."""

    __slots__ = ("_columns", "_descriptor", "_end", "_path")

    def __init__(self, path: Path, columns: int) -> None:
        self._path = path
        self._columns = columns
        self._descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
        self._end = os.fstat(self._descriptor).st_size

    def episode(self, record: LogRecord) -> None:
        """Commit an episode. Raises DiskFullError and leaves the log as it was."""
        self._append(_encode(_EPISODE, record, self._columns))

    def seal(self, sequence: int, episodes: int, rows: int, time: int) -> None:
        """Say that the segment gets no more episodes."""
        record = LogRecord(episodes, sequence, rows, 0, 0, 0.0, None, -1, -1, -1, time, time, ())
        self._append(_encode(_SEAL, record, self._columns))

    def _append(self, data: bytes) -> None:
        append_all(self._descriptor, data, self._path, self._end)
        self._end += len(data)

    def close(self) -> None:
        """Close the descriptor; may be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class CommitLog:
    """Reads one log, and on ``refresh`` only what was appended since."""

    __slots__ = (
        "_checksums",
        "_count",
        "_inode",
        "_offset",
        "_records",
        "header",
        "path",
        "rows",
        "sealed",
        "sequence",
        "steps",
    )

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reset()
        self.refresh()

    def _reset(self) -> None:
        self.header: LogHeader | None = None
        self._inode = -1
        self._offset = 0
        self._count = 0
        self._records = np.zeros(0, RECORD)
        self._checksums = np.zeros((0, 0), "<u4")
        self.sequence = 0
        """Records so far: the sequence number of the next one."""
        self.rows = 0
        """Committed rows."""
        self.steps = 0
        """Committed steps."""
        self.sealed = False

    @property
    def records(self) -> np.ndarray[Any, Any]:
        """The committed episodes, dtype RECORD, in order; do not write into it."""
        return self._records[: self._count]

    @property
    def column_checksums(self) -> np.ndarray[Any, Any]:
        """CRC32C of every column over each episode's rows, uint32 (episodes, columns)."""
        return self._checksums[: self._count]

    @property
    def end(self) -> int:
        """Bytes of the header and of all good records."""
        return self._offset

    def refresh(self) -> bool:
        """Take in new records; True when there were any (or the log was replaced)."""
        with self.path.open("rb") as file:
            status = os.fstat(file.fileno())
            replaced = status.st_ino != self._inode or status.st_size < self._offset
            if not replaced and status.st_size == self._offset:
                return False
            if replaced:
                self._reset()
                self._inode = status.st_ino
            file.seek(self._offset)
            data = file.read()
            if self.header is None:
                self.header, self._offset = LogHeader.decode(data, self.path)
                data = data[self._offset :]
            raw, suspicious = self._scan(data)
            if suspicious:
                file.seek(self._offset)
                raw, suspicious = self._scan(file.read())
        if suspicious:
            raise CorruptStoreError(
                f"record {self.sequence + len(raw)} of {self.path} fails its checksum although "
                "good records follow it; the log was damaged. Restore it from a copy."
            )
        return self._take(raw) or replaced

    def torn_bytes(self) -> int:
        """Bytes after the last good record: what a writer that died left behind."""
        return self.path.stat().st_size - self._offset

    def _dtype(self) -> np.dtype[Any]:
        if self.header is None:
            raise CorruptStoreError(f"{self.path} has no header; restore it from a copy")
        return record_dtype(len(self.header.columns))

    def _scan(self, data: bytes) -> tuple[np.ndarray[Any, Any], bool]:
        """The good records before the first bad one, and whether good ones follow a bad one."""
        dtype = self._dtype()
        size = dtype.itemsize
        raw = np.frombuffer(data, dtype, count=len(data) // size)
        sums = [crc32c(data[at : at + size - 4]) for at in range(0, len(raw) * size, size)]
        good = raw["crc"] == np.array(sums, dtype="<u4")
        if good.all():
            return raw, False
        first = int(np.argmin(good))
        return raw[:first], bool(good[first:].any())

    def _take(self, raw: np.ndarray[Any, Any]) -> bool:
        if not len(raw):
            return False
        episodes = raw[raw["kind"] == _EPISODE]
        self._check_order(raw, episodes)
        self._grow(len(episodes))
        new = self._records[self._count : self._count + len(episodes)]
        for name in RECORD.names or ():
            new[name] = episodes[name] if name != "seed_known" else episodes["flags"] & _SEED_KNOWN
        if len(episodes):
            self._checksums[self._count : self._count + len(episodes)] = episodes["column_crc"]
        self._count += len(episodes)
        self._offset += raw.nbytes
        self.sequence += len(raw)
        self.steps += int(episodes["length"].sum())
        if len(episodes):
            self.rows = int(new["start"][-1] + new["length"][-1] + 1)
        self.sealed = bool(raw["kind"][-1] == _SEAL)
        return True

    def _check_order(self, raw: np.ndarray[Any, Any], episodes: np.ndarray[Any, Any]) -> None:
        expected = self.sequence + np.arange(len(raw))
        ends = episodes["start"] + episodes["length"] + 1
        starts = np.concatenate([[self.rows], ends[:-1]])
        wrong = np.flatnonzero(raw["sequence"] != expected)
        if not len(wrong):
            wrong = np.flatnonzero(starts[: len(episodes)] != episodes["start"])
        if len(wrong):
            raise CorruptStoreError(
                f"record {self.sequence + int(wrong[0])} of {self.path} does not follow its "
                "predecessor; the log was edited or mixed up. Restore it from a copy."
            )

    def _grow(self, more: int) -> None:
        needed = self._count + more
        if needed <= len(self._records):
            return
        size = max(needed, 2 * self._count)
        records = np.zeros(size, RECORD)
        records[: self._count] = self.records
        checksums = np.zeros((size, self._dtype()["column_crc"].shape[0]), "<u4")
        if self._count:
            checksums[: self._count] = self.column_checksums
        self._records, self._checksums = records, checksums
