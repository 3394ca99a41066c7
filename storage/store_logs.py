"""The commit logs of a store, as a reader has taken them in."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from storage.commit_log import CommitLog
from storage.errors import CorruptStoreError
from storage.layout import StorePaths, log_inodes, segment_name
from storage.log_header import is_blank
from storage.schema import Schema
from storage.segment import header_of

__all__ = ["StoreLogs"]

_logger = logging.getLogger(__name__)


class StoreLogs:
    """Every log by segment id. What it shows is fixed until ``refresh``."""

    def __init__(self, paths: StorePaths, schema: Schema, uuid: str) -> None:
        self._paths = paths
        self._schema = schema
        self._uuid = uuid
        self._logs: dict[int, CommitLog] = {}
        self.lost_episodes: dict[int, int] = {}
        """Episodes that are not shown because they were lost with the machine, by segment."""

    def __contains__(self, segment: int) -> bool:
        return segment in self._logs

    def __iter__(self) -> Iterator[CommitLog]:
        return iter(self._logs.values())

    def ordered(self) -> list[tuple[int, CommitLog]]:
        """Segment ids and logs, by id."""
        return sorted(self._logs.items())

    def get(self, segment: int) -> CommitLog:
        """The log of a segment, read now if it was not; KeyError when there is none."""
        if segment not in self._logs and self._paths.log(segment).exists():
            self._take(segment, None)
            self._distrust({segment})
        if segment not in self._logs:
            raise KeyError(f"{self._paths.root} has no segment {segment_name(segment)}")
        return self._logs[segment]

    def clear(self) -> None:
        """Forget everything."""
        self._logs.clear()
        self.lost_episodes.clear()

    def refresh(self) -> bool:
        """Take in what was committed, made and dropped since; True when there was anything."""
        found = log_inodes(self._paths)
        gone = self._logs.keys() - found.keys()
        for segment in gone:
            del self._logs[segment]
        changed = bool(gone)
        known = set(self._logs)
        for segment in sorted(found):
            changed |= self._refresh(segment, found[segment])
        self._distrust(self._logs.keys() - known)
        return changed

    def _refresh(self, segment: int, inode: int) -> bool:
        try:
            return self._take(segment, inode)
        except FileNotFoundError:  # dropped, or rewound, since it was listed
            return self._logs.pop(segment, None) is not None
        except CorruptStoreError:
            log = self._paths.log(segment)
            if log.exists() and not is_blank(log):
                raise
            return self._logs.pop(segment, None) is not None

    def _take(self, segment: int, inode: int | None) -> bool:
        log = self._logs.get(segment)
        if log is None:
            log = CommitLog(self._paths.log(segment))
            self._check(log)
            self._logs[segment] = log
            return True
        return False if log.sealed and log.inode == inode else log.refresh()

    def _check(self, log: CommitLog) -> None:
        header = header_of(log)
        names = [column.name for column in self._schema.columns]
        if header.store_uuid != self._uuid or header.columns != names:
            raise CorruptStoreError(
                f"{log.path} belongs to store {header.store_uuid}, not to {self._uuid} at "
                f"{self._paths.root}; move it and its segment out"
            )

    def _distrust(self, segments: set[int]) -> None:
        """Hide what did not reach the disk before the machine went down while it was written."""
        from storage.trust import distrust

        logs = {segment: self._logs[segment] for segment in segments if segment in self._logs}
        for segment, lost in distrust(self._paths, self._schema, logs).items():
            self.lost_episodes[segment] = lost
            _logger.warning(
                "%s: %d episodes of segment %06d are not shown, for their checksums differ: their "
                "rows were changed, or did not reach the disk before the machine went down, or a "
                "copy of it was made. `sharpwave repair` sets them aside",
                self._paths.root,
                lost,
                segment,
            )
