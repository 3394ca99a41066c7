"""Real damage to a real store, and what must be left of it."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np

import storage
from storage.checksum import crc32c
from storage.column_file import ColumnFile
from storage.layout import StorePaths
from storage.log_header import LogHeader
from storage.log_record import RecordKind, record_dtype
from tests.storage.zoo import play, tiny_spec

__all__ = [
    "Sound",
    "column_file",
    "cut",
    "flip",
    "make_sound",
    "reseal",
    "row_at",
    "set_row",
    "spoil",
    "tree",
]

LANES = 2
EPISODES = 12


class Sound:
    """A store of 4 segments, an overlay and 24 Tiny episodes, and all their bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.paths = StorePaths(path)
        with storage.open(path) as store:
            self.schema = store.schema
            self.episodes = {
                (each.record.segment, each.record.ordinal): {
                    name: values.copy() for name, values in each.columns.items()
                }
                for each in store.iterate_episodes()
            }

    def kinds(self) -> set[str]:
        """Kinds of errors and warnings that a verification finds."""
        report = storage.verify(self.path)
        return {each.kind for each in (*report.errors, *report.warnings)}

    def readable(self) -> set[tuple[int, int]]:
        """The episodes that read back as they were written; fails where one has changed."""
        with storage.open(self.path) as store:
            found = set()
            for episode in store.iterate_episodes():
                key = (episode.record.segment, episode.record.ordinal)
                for name, values in episode.columns.items():
                    np.testing.assert_array_equal(values, self.episodes[key][name], err_msg=name)
                found.add(key)
        return found


@cache
def _template() -> Path:
    path = Path(mkdtemp(prefix="sound")) / "store"
    with storage.create(path, tiny_spec()) as store:
        with store.writer(lanes=LANES, run="sound", row_budget=40) as writer:
            for episode in range(EPISODES):
                for lane in range(LANES):
                    play(writer, lane, episode)
        store.refresh()
        view = store.replay(64, scheme="per")
        batch = view.sample(8)
        view.feed_back(batch, priority_error=np.ones(8))
        view.close()
    return path


def make_sound(path: Path) -> Sound:
    """A copy of that store."""
    shutil.copytree(_template(), path)
    return Sound(path)


def flip(path: Path, at: int, bit: int = 0) -> None:
    """Turn one bit over."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << bit
    path.write_bytes(data)


def spoil(path: Path, at: int) -> None:
    """Turn bits of three bytes over, which no checksum tells how to put right."""
    for offset in range(3):
        flip(path, at + offset, offset)


def cut(path: Path, size: int) -> None:
    """Keep the first bytes only."""
    path.write_bytes(path.read_bytes()[:size])


def column_file(sound: Sound, segment: int, name: str) -> ColumnFile:
    """A column's file."""
    header, _ = LogHeader.decode(sound.paths.log(segment).read_bytes(), sound.paths.log(segment))
    folder = sound.paths.segment(segment) / name
    return ColumnFile(folder, sound.schema.column(name), header.capacity)


def row_at(sound: Sound, segment: int, name: str, row: int) -> int:
    """The byte of its file at which a row starts."""
    return column_file(sound, segment, name).size(row)


def set_row(sound: Sound, segment: int, name: str, row: int, value: Any) -> None:
    """Store a value into a row, as nobody may."""
    file = column_file(sound, segment, name)
    array = file.map(row + 1, writable=True)
    array.view(np.uint8 if file.column.dtype.kind == "b" else file.column.dtype)[row] = value


def reseal(sound: Sound, segment: int, **fields: Any) -> None:
    """Give all records the checksums of what is in the columns now: a forger's work.

    ``fields`` are set in the record of episode 0.
    """
    path = sound.paths.log(segment)
    data = path.read_bytes()
    header, size = LogHeader.decode(data, path)
    records = np.frombuffer(data[size:], record_dtype(len(header.columns))).copy()
    for name, value in fields.items():
        records[name][0] = value
    for record in records:
        if record["kind"] == RecordKind.EPISODE:
            end = int(record["start"] + record["length"]) + 1
            for place, name in enumerate(header.columns):
                rows = column_file(sound, segment, name).map(end, writable=False)
                record["column_crc"][place] = crc32c(rows[int(record["start"]) :])
        record["crc"] = crc32c(record.tobytes()[:-4])
    path.write_bytes(data[:size] + records.tobytes())


def tree(path: Path, *but: str) -> dict[str, bytes]:
    """Every file below a folder, but for those in the named folders of it."""
    files = (file for file in sorted(path.rglob("*")) if file.is_file())
    return {
        file.relative_to(path).as_posix(): file.read_bytes()
        for file in files
        if file.relative_to(path).parts[0] not in but
    }
