"""The commit log of a segment: the only truth about which rows count.

A header, then fixed-width records: one a closed episode, and one that seals the segment. A record
is written by one write(2) after the rows it speaks of. Readers ignore a bad tail (a write in
progress, or a writer that died); a bad record before good ones is corruption.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from storage.checksum import crc32c, extend_crc32c
from storage.containment import open_regular, read_regular
from storage.errors import CorruptStoreError
from storage.layout import segment_name
from storage.log_header import LogHeader
from storage.log_record import (
    RECORD,
    RecordKind,
    good_records,
    impossible,
    record_dtype,
    take_fields,
    with_kind,
)

__all__ = ["CommitLog"]

_SEAL, _VOID = int(RecordKind.SEAL), int(RecordKind.VOID)

_BLOCK_BYTES = 2**20
"""Of a log that are looked at together; a header is never as long."""


class _Taken(NamedTuple):
    """All that was read of a log so far: replaced as a whole, so that no interrupt tears it."""

    header: LogHeader | None = None
    inode: int = -1
    offset: int = 0
    ordinals: int = 0
    """Episodes so far, those that a repair took out included."""
    all_records: np.ndarray[Any, Any] = np.zeros(0, RECORD)
    all_checksums: np.ndarray[Any, Any] = np.zeros((0, 0), "<u4")
    void: np.ndarray[Any, Any] = np.zeros(0, np.int64)
    """Ordinals of the episodes that count for nobody."""
    sequence: int = 0
    rows: int = 0
    steps: int = 0
    sealed: bool = False
    checksum: int = 0


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
    def inode(self) -> int:
        """The file that was read; another one when the log was replaced."""
        return self._taken.inode

    @property
    def sequence(self) -> int:
        """Records so far: the sequence number of the next one."""
        return self._taken.sequence

    @property
    def ordinals(self) -> int:
        """The ordinal of the next episode."""
        return self._taken.ordinals

    @property
    def rows(self) -> int:
        """Committed rows, those of voided episodes included."""
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
    def checksum(self) -> int:
        """CRC32C of the header and all records, as they were before any repair."""
        return self._taken.checksum

    @property
    def records(self) -> np.ndarray[Any, Any]:
        """The committed episodes, dtype RECORD, in order; do not write into it.

        Of a repaired segment ordinals are missing, so that an index here need not be an ordinal.
        """
        taken = self._taken
        return _without(taken.all_records[: taken.ordinals], taken.void)

    @property
    def column_checksums(self) -> np.ndarray[Any, Any]:
        """CRC32C of every column over each of ``records``' rows, uint32 (episodes, columns)."""
        taken = self._taken
        return _without(taken.all_checksums[: taken.ordinals], taken.void)

    @property
    def voids(self) -> np.ndarray[Any, Any]:
        """The episodes that a repair took out, dtype RECORD, in order."""
        taken: np.ndarray[Any, Any] = self._taken.all_records[self._taken.void]
        return taken

    @property
    def end(self) -> int:
        """Bytes of the header and of all good records."""
        return self._taken.offset

    def rows_at(self, sequence: int) -> int:
        """Rows that the first ``sequence`` records of the log speak of."""
        taken = self._taken
        records = taken.all_records[: taken.ordinals]
        count = int(np.searchsorted(records["sequence"], sequence))
        return int(_ends(records[count - 1 : count])[0]) if count else 0

    def byte_at(self, sequence: int) -> int:
        """Byte at which the record number ``sequence`` starts."""
        header, size = LogHeader.decode(read_regular(self.path), self.path)
        return size + sequence * record_dtype(len(header.columns)).itemsize

    def checksum_at(self, sequence: int) -> int:
        """What ``checksum`` was when the log had its first ``sequence`` records."""
        header, size = LogHeader.decode(data := read_regular(self.path), self.path)
        end = size + sequence * record_dtype(len(header.columns)).itemsize
        raw = np.frombuffer(data[size:end], record_dtype(len(header.columns)))
        return _extended(crc32c(data[:size]), raw)

    def distrust(self, ordinals: Iterable[int]) -> None:
        """Show these episodes no more, as if a repair had taken them out; the file stays."""
        taken = self._taken
        void = np.union1d(taken.void, np.fromiter(ordinals, np.int64))
        kept = _without(taken.all_records[: taken.ordinals], void)
        self._taken = taken._replace(void=void, steps=int(kept["length"].sum()))

    def refresh(self) -> bool:
        """Take in new records; True when there were any (or the log was replaced)."""
        taken = self._taken
        with open(self.path, "rb", opener=open_regular) as file:
            status = os.fstat(file.fileno())
            replaced = status.st_ino != taken.inode or status.st_size < taken.offset
            if not replaced and status.st_size == taken.offset:
                return False
            if replaced:
                taken = _Taken(inode=status.st_ino)
            if taken.header is None:
                data = file.read(_BLOCK_BYTES)
                header, size = LogHeader.decode(data, self.path)
                taken = taken._replace(header=header, offset=size, checksum=crc32c(data[:size]))
            self._taken = self._take_all(file, taken, status.st_size - taken.offset)
        return replaced or self._taken.sequence > taken.sequence

    def take_appended(self, data: bytes, size: int) -> None:
        """Take in the one record that this process just appended, the log's size being ``size``."""
        taken = self._taken
        if taken.offset + len(data) == size:
            raw = np.frombuffer(data, record_dtype(len(self._header(taken).columns)))
            self._taken = self._take(taken, raw)
        else:  # an interrupt had come between another append and this
            self.refresh()

    def torn_bytes(self) -> int:
        """Bytes after the last good record: what a writer that died left behind."""
        return self.path.stat().st_size - self.end

    def _header(self, taken: _Taken) -> LogHeader:
        if taken.header is None:
            raise CorruptStoreError(f"{self.path} has no header; restore it from a copy")
        return taken.header

    def _take_all(self, file: BinaryIO, taken: _Taken, size: int) -> _Taken:
        """What is known with ``size`` more bytes of the file: some at a time, to stay in caches."""
        columns = len(self._header(taken).columns)
        each = record_dtype(columns).itemsize
        taken = self._grown(taken, size // each)
        file.seek(taken.offset)
        while data := file.read(_BLOCK_BYTES // each * each):
            raw, good = good_records(data, columns)
            if not good.all():
                return self._take_end(file, taken, columns)
            self._check(taken, raw)
            taken = self._take(taken, raw)
        return taken

    def _take_end(self, file: BinaryIO, taken: _Taken, columns: int) -> _Taken:
        """The same where a bad record comes: all before it, unless good ones follow."""
        for _ in range(2):  # a writer may have been in the middle of it at the first look
            file.seek(taken.offset)
            raw, good = good_records(file.read(), columns)
            bad = int(np.argmin(good)) if not good.all() else len(raw)
            if not good[bad:].any():
                self._check(taken, raw[:bad])
                return self._take(taken, raw[:bad])
        what = "fails its checksum although good records follow it"
        raise self._damaged(taken, raw[:bad], what)

    def _take(self, taken: _Taken, raw: np.ndarray[Any, Any]) -> _Taken:
        """What is known with ``raw`` taken in; rows behind ``ordinals`` are nobody's meanwhile."""
        if not len(raw):
            return taken
        episodes = raw[raw["kind"] != _SEAL]
        taken = self._grown(taken, len(episodes))
        first, end = taken.ordinals, taken.ordinals + len(episodes)
        new = taken.all_records[first:end]
        take_fields(new, episodes)
        taken.all_checksums[first:end] = episodes["column_crc"]
        gone = episodes["kind"] == _VOID
        void = taken.void
        if gone.any():
            void = np.concatenate([void, first + np.flatnonzero(gone)])
        return taken._replace(
            ordinals=end,
            void=void,
            offset=taken.offset + raw.nbytes,
            sequence=taken.sequence + len(raw),
            steps=taken.steps + int(episodes["length"][~gone].sum()),
            rows=int(_ends(new[-1:])[0]) if len(new) else taken.rows,
            sealed=bool(raw["kind"][-1] == _SEAL),
            checksum=_extended(taken.checksum, raw),
        )

    def _check(self, taken: _Taken, raw: np.ndarray[Any, Any]) -> None:
        """Raise CorruptStoreError for records that no writer makes, or not in this place."""
        if not len(raw):
            return
        forged = np.flatnonzero(impossible(raw, self._header(taken).capacity))
        if len(forged):
            raise self._damaged(taken, raw[: int(forged[0])], "says what no writer says")
        seal = raw["kind"] == _SEAL
        late = np.flatnonzero(seal[:-1]) + 1
        if taken.sealed or len(late):
            first = 0 if taken.sealed else int(late[0])
            raise self._damaged(taken, raw[:first], "follows the seal")
        episodes = raw[~seal]
        starts = np.concatenate([[taken.rows], _ends(episodes)[:-1]])[: len(episodes)]
        wrong = raw["sequence"] != taken.sequence + np.arange(len(raw))
        wrong[~seal] |= starts != episodes["start"]
        wrong[~seal] |= episodes["ordinal"] != taken.ordinals + np.arange(len(episodes))
        if wrong.any():
            good = raw[: int(np.argmax(wrong))]
            raise self._damaged(taken, good, "does not follow its predecessor")

    def _damaged(self, taken: _Taken, good: np.ndarray[Any, Any], what: str) -> CorruptStoreError:
        """The error for the record after ``good``: what stands before it, and the ways out."""
        episodes = taken.ordinals + int((good["kind"] == RecordKind.EPISODE).sum())
        segment = segment_name(self._header(taken).segment)
        root = self.path.parent.parent
        return CorruptStoreError(
            f"record {taken.sequence + len(good)} of {self.path} {what}; the {episodes:,} "
            f"episodes before it are good. A fault of the disk, an edit, or two writers at once "
            f"can do that. `sharpwave verify {root}` says what is damaged, `sharpwave repair "
            f"{root}` keeps what is good of segment {segment} and sets the rest aside"
        )

    def _grown(self, taken: _Taken, more: int) -> _Taken:
        needed = taken.ordinals + more
        if needed <= len(taken.all_records) and taken.all_checksums.shape[1]:
            return taken
        size = max(needed, 2 * taken.ordinals)
        records = np.zeros(size, RECORD)
        records[: taken.ordinals] = taken.all_records[: taken.ordinals]
        checksums = np.zeros((size, len(self._header(taken).columns)), "<u4")
        if taken.ordinals:
            checksums[: taken.ordinals] = taken.all_checksums[: taken.ordinals]
        return taken._replace(all_records=records, all_checksums=checksums)


def _without(rows: np.ndarray[Any, Any], void: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.delete(rows, void, axis=0) if len(void) else rows


def _ends(records: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The row after each episode's closing row."""
    ends: np.ndarray[Any, Any] = records["start"] + records["length"] + 1
    return ends


def _extended(checksum: int, raw: np.ndarray[Any, Any]) -> int:
    """The checksum with more records, voided ones as they were before."""
    data = raw.tobytes()
    if (raw["kind"] == _VOID).any():
        size = raw.dtype.itemsize
        parts = [data[at : at + size] for at in range(0, len(data), size)]
        for i in np.flatnonzero(raw["kind"] == _VOID):
            parts[i] = with_kind(parts[i], RecordKind.EPISODE)
        data = b"".join(parts)
    return extend_crc32c(checksum, data)
