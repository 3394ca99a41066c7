"""The note beside a log about the episode that is open: what a salvage cannot see in the rows."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path

from storage.atomic import disk_full_as_error
from storage.checksum import crc32c
from storage.containment import open_regular

__all__ = ["OpenEpisodeNote", "create_note", "read_note", "write_note"]

_FIELDS = struct.Struct("<8sqQ?B6xqq")
_MAGIC = b"SWAVOPEN"
_SIZE = _FIELDS.size + 4


@dataclass(frozen=True, slots=True)
class OpenEpisodeNote:
    """Start row, reset seed, number within the lane and begin time (ns) of an open episode."""

    start: int
    seed: int | None
    lane_episode: int
    begin_time: int
    closing: int = 0
    """The ending with which a writer had begun to close the episode itself; 0 for none."""


def create_note(path: Path) -> None:
    """Make the file at its full size, so that later notes need no disk space."""
    with disk_full_as_error(path, _SIZE), open(path, "wb", opener=open_regular) as file:
        file.write(bytes(_SIZE))


def write_note(path: Path, note: OpenEpisodeNote) -> None:
    """Overwrite the note in place; a torn write fails its checksum and counts as no note."""
    seed = note.seed or 0
    known = note.seed is not None
    numbers = note.closing, note.lane_episode, note.begin_time
    data = _FIELDS.pack(_MAGIC, note.start, seed, known, *numbers)
    descriptor = open_regular(path, os.O_WRONLY | os.O_CREAT)
    try:
        os.pwrite(descriptor, data + crc32c(data).to_bytes(4, "little"), 0)
    finally:
        os.close(descriptor)


def read_note(path: Path) -> OpenEpisodeNote | None:
    """The note, or None when there is no whole one."""
    try:
        with open(path, "rb", opener=open_regular) as file:
            data = file.read(_SIZE + 1)
    except FileNotFoundError:
        return None
    if len(data) != _SIZE or int.from_bytes(data[-4:], "little") != crc32c(data[:-4]):
        return None
    magic, start, seed, known, closing, lane_episode, begin_time = _FIELDS.unpack(data[:-4])
    if magic != _MAGIC:
        return None
    return OpenEpisodeNote(start, seed if known else None, lane_episode, begin_time, closing)
