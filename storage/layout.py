"""Where everything lives in a store of format version 1, and the constants of that format."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

__all__ = [
    "DEFAULT_CAPACITY",
    "FORMAT_VERSION",
    "INNER_ROWS",
    "LARGEST_CAPACITY",
    "BehaviourKind",
    "Ending",
    "RowKind",
    "StorePaths",
    "align_up",
    "data_offset",
    "log_inodes",
    "segment_id",
    "segment_name",
]

FORMAT_VERSION = 1
INNER_ROWS = 256
"""Rows of one inner chunk: the unit that a foreign reader fetches."""
DEFAULT_CAPACITY = 2**18
"""Rows that one segment may hold at most, unless episodes are longer."""
LARGEST_CAPACITY = 2**28
"""Rows that no segment has more of, whatever a file says."""
_INDEX_ENTRY = 16
_INDEX_CHECKSUM = 4
_DATA_ALIGNMENT = 16384


class RowKind(IntEnum):
    """What a row holds."""

    NEVER_WRITTEN = 0
    STEP = 1
    CLOSING = 2


class BehaviourKind(IntEnum):
    """Which distribution drew a step's action."""

    UNKNOWN = 0
    GAUSSIAN = 1
    CATEGORICAL = 2
    UNIFORM = 3
    NOMINAL_GAUSSIAN = 4


class Ending(IntEnum):
    """How an episode ended."""

    TERMINATED = 1
    TRUNCATED = 2
    SALVAGED = 3
    """Its writer died; recovered on the next opening for writing."""
    CUT = 4
    """Stopped by the writer: end of the run, a full shard, or a value that is not finite."""

    @property
    def by_environment(self) -> bool:
        """Whether the environment ended the episode, so that its return is a whole one."""
        return self in (Ending.TERMINATED, Ending.TRUNCATED)


def align_up(value: int, multiple: int) -> int:
    """The least multiple of ``multiple`` that is not below ``value``."""
    return -(-value // multiple) * multiple


def data_offset(capacity: int) -> int:
    """Byte at which the rows of a column file start: after the shard's index, page-aligned."""
    entries = capacity // INNER_ROWS
    return align_up(entries * _INDEX_ENTRY + _INDEX_CHECKSUM, _DATA_ALIGNMENT)


def segment_name(segment: int) -> str:
    """The folder name of a segment."""
    return f"{segment:06d}"


def segment_id(name: str) -> int | None:
    """The segment that a folder or file stem names; None for strays such as "000000 (copy)"."""
    if not (name.isascii() and name.isdigit()):
        return None
    segment = int(name)
    return segment if segment_name(segment) == name else None


@dataclass(frozen=True, slots=True)
class StorePaths:
    """Every path inside a store, from its root folder."""

    root: Path

    @property
    def steps(self) -> Path:
        """The Zarr hierarchy of the written-once columns."""
        return self.root / "steps.zarr"

    @property
    def overlays(self) -> Path:
        """The folder of the overlays, one Zarr hierarchy each."""
        return self.root / "overlays"

    @property
    def logs(self) -> Path:
        """The folder of the commit logs."""
        return self.root / "log"

    @property
    def episodes(self) -> Path:
        """The folder of the derived Arrow tables."""
        return self.root / "episodes"

    @property
    def locks(self) -> Path:
        """The folder of the lock files; a segment id is claimed by creating its lock file."""
        return self.root / "locks"

    @property
    def orphans(self) -> Path:
        """What a rewind took out of the store; kept, never read."""
        return self.root / "orphans"

    @property
    def quarantine(self) -> Path:
        """Where damaged files are moved."""
        return self.root / "quarantine"

    @property
    def staging(self) -> Path:
        """Files under construction, on the same file system, unseen by foreign readers."""
        return self.root / "staging"

    def folders(self) -> tuple[Path, ...]:
        """All folders that a new store has."""
        return (
            self.steps,
            self.overlays,
            self.logs,
            self.episodes,
            self.locks,
            self.orphans,
            self.quarantine,
            self.staging,
        )

    def segment(self, segment: int) -> Path:
        """The Zarr group of one segment."""
        return self.steps / segment_name(segment)

    def log(self, segment: int) -> Path:
        """The commit log of one segment."""
        return self.logs / f"{segment_name(segment)}.log"

    @property
    def description(self) -> Path:
        """A copy of the root metadata, for when that is damaged."""
        return self.logs / "store.json"

    def open_episode(self, segment: int) -> Path:
        """The note about the episode that a segment's writer has open."""
        return self.logs / f"{segment_name(segment)}.open"

    def episode_table(self, segment: int) -> Path:
        """The Arrow table derived from one segment's log."""
        return self.episodes / f"{segment_name(segment)}.arrow"

    def lock(self, segment: int) -> Path:
        """The lock file of one segment."""
        return self.locks / f"{segment_name(segment)}.lock"


def log_inodes(paths: StorePaths) -> dict[int, int]:
    """The commit logs that are there: segment to inode, which a log that is replaced changes."""
    found = {}
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(paths.logs) as entries:
        for entry in entries:
            stem, dot, suffix = entry.name.rpartition(".")
            segment = segment_id(stem) if dot and suffix == "log" else None
            if segment is not None:
                found[segment] = entry.inode()
    return found
