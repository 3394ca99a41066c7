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
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from storage.atomic import append_all
from storage.checksum import crc32c
from storage.errors import CorruptStoreError, FormatVersionError
from storage.layout import FORMAT_VERSION, segment_name

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
    """Appends records to one log; holds the file open, and closes it when it is itself dropped."""

    __slots__ = ("_columns", "_file", "_path")

    def __init__(self, path: Path, columns: int) -> None:
        self._path = path
        self._columns = columns
        self._file = FileIO(path, "r+")

    def episode(self, record: LogRecord) -> None:
        """Commit an episode. Raises DiskFullError and leaves the log as it was."""
        self._append(_encode(_EPISODE, record, self._columns))

    def seal(self, sequence: int, episodes: int, rows: int, time: int) -> None:
        """Say that the segment gets no more episodes."""
        record = LogRecord(episodes, sequence, rows, 0, 0, 0.0, None, -1, -1, -1, time, time, ())
        self._append(_encode(_SEAL, record, self._columns))

    def _append(self, data: bytes) -> None:
        append_all(self._file.fileno(), data, self._path)

    def size(self) -> int:
        """Bytes of the log now, unfinished records included; -1 once closed."""
        return -1 if self._file.closed else os.fstat(self._file.fileno()).st_size

    def close(self) -> None:
        """Close the file; may be called twice."""
        self._file.close()


class _Taken(NamedTuple):
    """All that was read of a log so far: replaced as a whole, so that no interrupt tears it."""

    header: LogHeader | None = None
    inode: int = -1
    offset: int = 0
    episodes: int = 0
    all_records: np.ndarray[Any, Any] = np.zeros(0, RECORD)
    all_checksums: np.ndarray[Any, Any] = np.zeros((0, 0), "<u4")
    sequence: int = 0
    rows: int = 0
    steps: int = 0
    sealed: bool = False


class CommitLog:
    """Reads one log, and on ``refresh`` only what was appended since.

    Whatever instruction of a ``refresh`` an interrupt lands on, the log shows what it showed
    before, or all that was new.
    """

    __slots__ = ("_taken", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._taken = _Taken()
        self.refresh()

    @property
    def header(self) -> LogHeader | None:
        """What is fixed about the segment; None when the file held none."""
        return self._taken.header

    @property
    def sequence(self) -> int:
        """Records so far: the sequence number of the next one."""
        return self._taken.sequence

    @property
    def rows(self) -> int:
        """Committed rows."""
        return self._taken.rows

    @property
    def steps(self) -> int:
        """Committed steps."""
        return self._taken.steps

    @property
    def sealed(self) -> bool:
        """Whether no more episodes come."""
        return self._taken.sealed

    @property
    def records(self) -> np.ndarray[Any, Any]:
        """The committed episodes, dtype RECORD, in order; do not write into it."""
        taken = self._taken
        return taken.all_records[: taken.episodes]

    @property
    def column_checksums(self) -> np.ndarray[Any, Any]:
        """CRC32C of every column over each episode's rows, uint32 (episodes, columns)."""
        taken = self._taken
        return taken.all_checksums[: taken.episodes]

    @property
    def end(self) -> int:
        """Bytes of the header and of all good records."""
        return self._taken.offset

    def refresh(self) -> bool:
        """Take in new records; True when there were any (or the log was replaced)."""
        taken = self._taken
        with self.path.open("rb") as file:
            status = os.fstat(file.fileno())
            replaced = status.st_ino != taken.inode or status.st_size < taken.offset
            if not replaced and status.st_size == taken.offset:
                return False
            if replaced:
                taken = _Taken(inode=status.st_ino)
            file.seek(taken.offset)
            data = file.read()
            if taken.header is None:
                header, size = LogHeader.decode(data, self.path)
                taken = taken._replace(header=header, offset=size)
                data = data[size:]
            raw, suspicious = self._scan(taken, data)
            if suspicious:
                file.seek(taken.offset)
                raw, suspicious = self._scan(taken, file.read())
        if suspicious:
            raise self._damaged(taken, raw, "fails its checksum although good records follow it")
        self._taken = self._take(taken, raw)
        return replaced or len(raw) > 0

    def torn_bytes(self) -> int:
        """Bytes after the last good record: what a writer that died left behind."""
        return self.path.stat().st_size - self.end

    def _dtype(self, taken: _Taken) -> np.dtype[Any]:
        if taken.header is None:
            raise CorruptStoreError(f"{self.path} has no header; restore it from a copy")
        return record_dtype(len(taken.header.columns))

    def _scan(self, taken: _Taken, data: bytes) -> tuple[np.ndarray[Any, Any], bool]:
        """The good records before the first bad one, and whether good ones follow a bad one."""
        dtype = self._dtype(taken)
        size = dtype.itemsize
        raw = np.frombuffer(data, dtype, count=len(data) // size)
        sums = [crc32c(data[at : at + size - 4]) for at in range(0, len(raw) * size, size)]
        good = raw["crc"] == np.array(sums, dtype="<u4")
        if good.all():
            return raw, False
        first = int(np.argmin(good))
        return raw[:first], bool(good[first:].any())

    def _take(self, taken: _Taken, raw: np.ndarray[Any, Any]) -> _Taken:
        """What is known with ``raw`` taken in; rows behind ``count`` are nobody's meanwhile."""
        if not len(raw):
            return taken
        episodes = raw[raw["kind"] == _EPISODE]
        self._check_order(taken, raw, episodes)
        taken = self._grown(taken, len(episodes))
        end = taken.episodes + len(episodes)
        new = taken.all_records[taken.episodes : end]
        for name in RECORD.names or ():
            new[name] = episodes[name] if name != "seed_known" else episodes["flags"] & _SEED_KNOWN
        taken.all_checksums[taken.episodes : end] = episodes["column_crc"]
        rows = int(new["start"][-1] + new["length"][-1] + 1) if len(new) else taken.rows
        return taken._replace(
            episodes=end,
            offset=taken.offset + raw.nbytes,
            sequence=taken.sequence + len(raw),
            steps=taken.steps + int(episodes["length"].sum()),
            rows=rows,
            sealed=bool(raw["kind"][-1] == _SEAL),
        )

    def _check_order(
        self, taken: _Taken, raw: np.ndarray[Any, Any], episodes: np.ndarray[Any, Any]
    ) -> None:
        expected = taken.sequence + np.arange(len(raw))
        ends = episodes["start"] + episodes["length"] + 1
        starts = np.concatenate([[taken.rows], ends[:-1]])
        wrong = np.flatnonzero(raw["sequence"] != expected)
        if not len(wrong):
            apart = np.flatnonzero(starts[: len(episodes)] != episodes["start"])
            wrong = np.flatnonzero(raw["kind"] == _EPISODE)[apart]
        if len(wrong):
            raise self._damaged(taken, raw[: int(wrong[0])], "does not follow its predecessor")

    def _damaged(self, taken: _Taken, good: np.ndarray[Any, Any], what: str) -> CorruptStoreError:
        """The error for the record after ``good``: what stands before it, and the ways out."""
        episodes = taken.episodes + int((good["kind"] == _EPISODE).sum())
        keep = taken.offset + good.nbytes
        segment = segment_name(taken.header.segment) if taken.header else self.path.stem
        root = self.path.parent.parent
        files = (f"log/{segment}.log", f"log/{segment}.open", f"steps.zarr/{segment}")
        return CorruptStoreError(
            f"record {taken.sequence + len(good)} of {self.path} {what}; the {episodes:,} "
            f"episodes before it are good. A fault of the disk, an edit, or two writers at once "
            f"can do that. To use the store without this segment, move {', '.join(files)} and "
            f"episodes/{segment}.arrow out of {root}; to keep the good episodes instead, copy the "
            f"log, then cut it behind them: truncate -s {keep} {self.path}"
        )

    def _grown(self, taken: _Taken, more: int) -> _Taken:
        needed = taken.episodes + more
        if needed <= len(taken.all_records) and taken.all_checksums.shape[1]:
            return taken
        size = max(needed, 2 * taken.episodes)
        records = np.zeros(size, RECORD)
        records[: taken.episodes] = taken.all_records[: taken.episodes]
        checksums = np.zeros((size, self._dtype(taken)["column_crc"].shape[0]), "<u4")
        if taken.episodes:
            checksums[: taken.episodes] = taken.all_checksums[: taken.episodes]
        return taken._replace(all_records=records, all_checksums=checksums)
