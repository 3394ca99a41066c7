"""The writer's side of one segment: its lock, its log, and maps it may store into.

The order of things is the promise: rows are allocated before they are stored, stored before their
log record is written, and published for foreign readers after that.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np

from storage.atomic import write_atomic
from storage.checksum import crc32c
from storage.column_file import ColumnFile
from storage.commit_log import CommitLog
from storage.containment import require_inside
from storage.episode_table import EpisodeRecord, write_episode_table
from storage.errors import DeviceError, DiskFullError, SharpwaveError, WriterStateError
from storage.layout import INNER_ROWS, StorePaths, align_up, segment_name
from storage.lock import SegmentLock
from storage.log_appender import LogAppender
from storage.log_header import LogHeader
from storage.log_record import LogRecord
from storage.open_episode import create_note
from storage.schema import Schema
from storage.segment import header_of
from storage.segment_files import build_folder, next_allocation, publish_arrays
from storage.syncing import Syncing, SyncRule, sync_path, sync_tree

__all__ = ["SegmentWriter"]

_logger = logging.getLogger(__name__)
_WORTH_SHRINKING = 2**20
_WORTH_SYNCING = 2**18
"""Bytes of a sealed segment whose checksums take longer to check than its files to sync."""


class SegmentWriter:
    """Holds a segment open for writing. Made by ``create`` or ``open``."""

    def __init__(
        self,
        paths: StorePaths,
        schema: Schema,
        lock: SegmentLock,
        sync: SyncRule | None = None,
    ) -> None:
        self.id = lock.segment
        self.paths = paths
        self.schema = schema
        self._lock = lock
        self._folder = paths.segment(self.id)
        self._log = CommitLog(paths.log(self.id))
        header = header_of(self._log)
        self.capacity = header.capacity
        self.lane = header.lane
        self._files = [
            ColumnFile(self._folder / column.name, column, self.capacity)
            for column in schema.columns
        ]
        for file in self._files:
            require_inside(paths.root, file.path)
            file.require(self._log.rows)
            file.fill_holes()
        self.allocated = min(file.allocated() for file in self._files)
        """Rows that may be stored into."""
        self.torn_bytes = self._cut_torn_tail()
        self._appender = LogAppender(paths.log(self.id), len(schema.columns))
        self.arrays: dict[str, np.ndarray[Any, Any]] = {
            file.column.name: file.map(self.capacity, writable=True) for file in self._files
        }
        """Every column over the full capacity; only rows below ``allocated`` may be touched."""
        self._syncing = None if sync is None else Syncing(sync, self._folder, self._appender)
        self.failed = False
        """Whether the device refused something: nothing more is to be written here."""
        self.taken = False
        """Whether somebody else may have written here."""
        self._published_at = 0.0
        self._published_rows = -1

    @classmethod
    def create(
        cls,
        paths: StorePaths,
        schema: Schema,
        uuid: str,
        run: str,
        lane: int,
        capacity: int,
        sync: SyncRule | None = None,
        first: int | None = None,
    ) -> SegmentWriter:
        """Claim the next id and make its segment. On DiskFullError nothing of it remains.

        ``first`` is the least id to try; see ``SegmentLock.claim``.
        """
        lock = SegmentLock.claim(paths, first)
        header = LogHeader(
            uuid, lock.segment, [c.name for c in schema.columns], capacity, run, lane
        )
        staged = paths.staging / segment_name(lock.segment)
        folder = paths.segment(lock.segment)
        note = paths.open_episode(lock.segment)
        try:
            build_folder(staged, schema.columns, capacity)
            create_note(note)
            if sync is not None:
                sync_tree(staged)
            staged.rename(folder)
            write_atomic(paths.log(lock.segment), header.encode(), paths.staging, sync=True)
            if sync is not None:
                for made in (paths.steps, paths.logs, paths.locks):
                    sync_path(made)
            return cls(paths, schema, lock, sync)
        except BaseException:
            with suppress(OSError):  # a device that is gone: the first error tells
                if not paths.log(lock.segment).exists():
                    for made in (folder, staged):
                        shutil.rmtree(made, ignore_errors=True)
                    note.unlink(missing_ok=True)
                    lock.discard()
            lock.release()
            raise

    @classmethod
    def open(
        cls, paths: StorePaths, schema: Schema, segment: int, sync: SyncRule | None = None
    ) -> SegmentWriter:
        """Take up an existing segment; raises SegmentLockedError when its writer lives."""
        lock = SegmentLock.acquire(paths, segment)
        try:
            return cls(paths, schema, lock, sync)
        except FileNotFoundError:
            if not paths.log(segment).exists():  # taken away before it was locked
                lock.discard()
            lock.release()
            raise
        except BaseException:
            lock.release()
            raise

    @property
    def rows(self) -> int:
        """Committed rows."""
        return self._log.rows

    @property
    def episodes(self) -> int:
        """Episodes so far, those that a repair took out included: the next one's ordinal."""
        return self._log.ordinals

    @property
    def sequence(self) -> int:
        """Records in the log."""
        return self._log.sequence

    @property
    def checksum(self) -> int:
        """CRC32C of the log so far."""
        return self._log.checksum

    @property
    def vouched(self) -> bool:
        """Whether no row can have been lost with the machine."""
        return self._lock.vouched

    def vouch(self) -> None:
        """Say that all rows were found on the disk."""
        self._lock.vouch()

    def take_up(self) -> None:
        """Say that more rows follow."""
        self._lock.take_up()

    @property
    def sealed(self) -> bool:
        """Whether the log says that no more episodes come."""
        return self._log.sealed

    @property
    def released(self) -> bool:
        """Whether the maps and the lock were given back."""
        return not self.arrays

    def reconcile(self) -> None:
        """Take in what the log really says, wherever an earlier call was interrupted."""
        if self._appender.size() != self._log.end:
            self._log.refresh()
            if not self.released:
                self._cut_torn_tail()

    def reopen_log(self) -> None:
        """Take up the log that was put in the place of the one that is open."""
        self._appender.close()
        self._appender = LogAppender(self._log.path, len(self.schema.columns))
        self._log.refresh()

    def _cut_torn_tail(self) -> int:
        torn = self._log.torn_bytes()
        if torn:
            _logger.warning(
                "%s: cut %d bytes of a record that its writer did not finish", self._log.path, torn
            )
            os.truncate(self._log.path, self._log.end)
        return torn

    def ensure(self, rows: int) -> None:
        """Allocate every column for at least ``rows`` rows, more when there is room.

        Raises DiskFullError with all columns at their size before.
        """
        if rows <= self.allocated:
            return
        row_bytes = self.schema.row_bytes
        target = next_allocation(self.allocated, rows, row_bytes, self.capacity)
        least = min(align_up(rows, INNER_ROWS), self.capacity)
        try:
            self._allocate(target)
        except DiskFullError:
            if least == target:
                raise
            target = least
            self._allocate(target)
        self.allocated = target

    def _allocate(self, rows: int) -> None:
        sizes = [file.path.stat().st_size for file in self._files]
        try:
            for file in self._files:
                file.allocate(rows)
        except BaseException:
            for file, size in zip(self._files, sizes, strict=True):
                os.truncate(file.path, size)
            raise

    def commit(self, record: LogRecord) -> None:
        """Append an episode's record; its rows must be stored, its checksums are taken here.

        Appends nothing when the log holds the record already. Raises DeviceError when the device
        does not take it; called again, it commits the episode as far as a process can.
        """
        self.reconcile()
        end = record.start + record.length + 1
        if self.rows <= record.start:
            with self._noting_failure():
                if self._syncing is not None and not self.failed:
                    self._syncing.before_record(self.arrays, end)
            self._append(record, end)
        with self._noting_failure():
            if self._syncing is not None and not self.failed:
                self._syncing.after_record(self.arrays, end)

    def sync(self, rows: int = 0) -> None:
        """Under a sync rule, bring all committed rows, and the first ``rows``, to the device."""
        if self._syncing is not None and not self.failed and not self.released:
            with self._noting_failure():
                self._syncing.sync(self.arrays, max(rows, self.rows), self.rows)

    def check_held(self, start: int, end: int) -> None:
        """WriterStateError when somebody else wrote here, or may have, meanwhile.

        Rows [start, end) are the episode that is to be committed, or was just now.
        """
        own = self.rows in (start, end) and self._appender.in_place and self._lock.in_place
        if own:
            return
        self.taken = True
        raise WriterStateError(
            f"segment {segment_name(self.id)} of {self.paths.root} was taken from its writer: its "
            "lock file or log was removed or replaced, or another process wrote into it. Nothing "
            "more is written there. abandon(lane) gives up the episode that was to be committed; "
            "look at the store with `sharpwave verify`"
        )

    @contextmanager
    def _noting_failure(self) -> Iterator[None]:
        try:
            yield
        except DeviceError:
            self.failed = True
            raise

    def _append(self, record: LogRecord, end: int) -> None:
        checksums = tuple(
            crc32c(self.arrays[column.name][record.start : end]) for column in self.schema.columns
        )
        data = self._appender.episode(replace(record, column_crc=checksums))
        self._log.take_appended(data, self._appender.size())

    def publish(self, interval: float = 0.0) -> None:
        """Show the committed rows to foreign readers, unless done within ``interval`` seconds."""
        if self._published_rows == self.rows:
            return
        now = time.monotonic()
        if self._published_at and now - self._published_at < interval:
            return
        staging = self.paths.staging
        # The table first: where rows are shown and there is none, it was lost.
        table = self.paths.episode_table(self.id)
        write_episode_table(table, header_of(self._log), self._log.records, staging)
        publish_arrays(self._folder, self.schema.columns, self.rows, self.capacity, staging)
        self._published_at = now
        self._published_rows = self.rows

    def seal(self) -> None:
        """Say that no more episodes come, publish, and release; ``settle`` may follow."""
        self.reconcile()
        self.sync()
        if not self.sealed:
            self._appender.seal(self.sequence, self.episodes, self.rows, time.time_ns())
            self._log.refresh()
            self.sync()
        self.publish()
        self.release()

    def settle(self) -> None:
        """After the seal: give back unused space, bring all to the disk, and vouch for it.

        Takes milliseconds, on some disks many. Where it fails, or is not worth it for so few rows,
        somebody looks at the segment after the next boot.
        """
        self._shrink(self.rows)
        if self.rows * self.schema.row_bytes < _WORTH_SYNCING:
            return
        with suppress(OSError, SharpwaveError):
            for file in self._files:
                sync_path(file.path)
            sync_path(self._log.path)
            lock = SegmentLock.acquire(self.paths, self.id)
            lock.vouch()
            lock.release()

    def _shrink(self, rows: int) -> None:
        for file in self._files:
            file.shrink(rows)

    @property
    def last_episode(self) -> EpisodeRecord:
        """The newest committed episode; there must be one."""
        return EpisodeRecord.of(header_of(self._log), self._log.records, -1)

    def close(self, *, seal: bool = False, keep: int = 0) -> None:
        """Publish, give back much unused space, and the lock; the segment may be taken up again.

        The row after the committed ones stays: it may hold the first observation of an episode
        that a position remembers as open. So do the first ``keep`` rows, of an episode
        that could not be committed. With ``seal`` nobody takes it up: all unused space goes.
        """
        try:
            self.reconcile()
            self.sync()
            keep = max(keep, self.rows + 1)
            if seal and keep == self.rows + 1:
                self.seal()
                self.settle()
                return
            if (self.allocated - keep) * self.schema.row_bytes > _WORTH_SHRINKING:
                self._shrink(keep)
            try:
                self.publish()
            except DiskFullError:
                self._shrink(keep)
                self.publish()
        finally:
            self.release()

    def release(self) -> None:
        """Drop the maps, the log and the lock, whatever else failed; may be called twice."""
        self.arrays = {}
        self._appender.close()
        self._lock.release()
