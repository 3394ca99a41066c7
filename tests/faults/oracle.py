"""What must be in a store, known outside it; and what is in it, read without its help.

An episode's identity is (segment, first row). Its fingerprint is its log record and the checksums
that this module computes from the bytes of its rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import storage
from storage.checksum import crc32c
from storage.column_file import ColumnFile
from storage.layout import Ending, RowKind
from storage.log_record import RECORD, RecordKind, record_dtype, take_fields
from storage.schema import Column
from tests.storage.zoo import check_tiny

__all__ = ["Fingerprint", "Oracle", "promised", "read_told", "survey", "verify_quietly"]

Key = tuple[int, int]


class Fingerprint(NamedTuple):
    """An episode as it is on disk."""

    record: bytes
    checksums: tuple[int, ...]


def promised(path: Path) -> dict[Key, Fingerprint]:
    """Every committed episode with the checksums that its record holds; cheap."""
    with storage.open(path) as store:
        return {
            (info.id, int(record["start"])): Fingerprint(
                record.tobytes(), tuple(int(known) for known in sums)
            )
            for info in store.segments
            for record, sums in zip(
                store.log(info.id).records, store.log(info.id).column_checksums, strict=True
            )
        }


def survey(path: Path) -> dict[Key, Fingerprint]:
    """Every committed episode with the checksums of the bytes that a reader is given.

    Fails where a record has others.
    """
    found = {}
    with storage.open(path) as store:
        for episode in store.iterate_episodes():
            record = episode.record
            raw, known = _recorded(store, record)
            sums = tuple(crc32c(np.ascontiguousarray(rows)) for rows in episode.columns.values())
            assert sums == known, f"{episode!r} of {path}: bytes differ from the log's checksums"
            found[record.segment, record.start] = Fingerprint(raw, sums)
    return found


def _recorded(store: storage.Store, record: Any) -> tuple[bytes, tuple[int, ...]]:
    log = store.log(record.segment)
    index = int(np.searchsorted(log.records["start"], record.start))
    sums = tuple(int(known) for known in log.column_checksums[index])
    return log.records[index].tobytes(), sums


def verify_quietly(path: Path) -> list[str]:
    """What the store itself finds, but for segments that were being made when their writer died.

    Such a folder has no log and no rows, so nothing is lost by it.
    """
    with storage.open(path) as store:
        return [text for text in store.problems() if not _being_made(store, text)]


def _being_made(store: storage.Store, problem: str) -> bool:
    folder = Path(problem.partition(" ")[0])
    if " has no log " not in problem or folder.parent != store.paths.steps:
        return False
    described = json.loads((folder / "reward" / "zarr.json").read_text())
    capacity = described["chunk_grid"]["configuration"]["chunk_shape"][0]
    files = [ColumnFile(folder / c.name, c, capacity) for c in store.schema.columns]
    return all(file.allocated() == 0 for file in files)


def read_told(path: Path) -> list[dict[str, int]]:
    """What a child of ``jobs.write`` told; its last line may be half written."""
    if not path.exists():
        return []
    lines = path.read_text().split("\n")[:-1]
    told = [json.loads(line) for line in lines]
    return [each for each in told if "segment" in each]


@dataclass
class Oracle:
    """Everything that was ever acknowledged of one store."""

    path: Path
    known: dict[Key, Fingerprint] = field(default_factory=dict)
    salvaged: int = 0
    aside: set[tuple[Key, Fingerprint]] = field(default_factory=set)
    """What a resumed run took out: it must be in orphans/ from then on."""
    orphans: bool = False
    """Whether runs may set episodes aside."""

    def see(self, seen: dict[Key, Fingerprint]) -> None:
        """Committed now, so for good; a number may be given again to what a rewind freed."""
        if self.orphans:
            both = self.known.keys() & seen.keys()
            self.aside |= {(k, self.known[k]) for k in both if self.known[k] != seen[k]}
        self.known |= seen

    def check(
        self, told: list[dict[str, int]] | None = None, *, sound: bool = True
    ) -> dict[Key, Fingerprint]:
        """Compare the store with all that is known and told; afterwards, all of it is known.

        ``sound``: verification must find nothing, either.
        """
        found = survey(self.path)
        faults = verify_quietly(self.path)
        assert not (sound and faults), faults
        lost = {key for key, known in self.known.items() if found.get(key) != known}
        if self.orphans:
            self.aside |= {(key, self.known[key]) for key in lost}
            lost = {key for key, known in self.aside if not _kept(self.path, key, known)}
        assert not lost, f"lost or changed: {sorted(lost)}"
        self._check_content(found, told)
        self.known = dict(found)
        return found

    def _check_content(self, found: dict[Key, Fingerprint], told: list[Any] | None) -> None:
        if told is None:
            return
        wanted = {(each["segment"], each["start"]): each for each in told}
        with storage.open(self.path) as store:
            for episode in store.iterate_episodes():
                record = episode.record
                key = record.segment, record.start
                each = wanted.pop(key, None)
                if each is not None:
                    assert (record.length, record.lane, record.lane_episode) == (
                        each["length"],
                        each["lane"],
                        each["episode"],
                    )
                if key not in self.known:
                    cut = record.ending is Ending.SALVAGED
                    self.salvaged += cut
                    check_tiny(store, record, steps=record.length if cut else None)
        assert not wanted, f"acknowledged, but not in the store: {sorted(wanted)}"


def _kept(path: Path, key: Key, known: Fingerprint) -> bool:
    """Whether orphans/ has this episode, or its run plays on where it was cut: no step is lost."""
    orphans = (path / "orphans").glob(f"{key[0]:06d}.*")
    whole = any(known in orphan_episodes(path, folder, key) for folder in orphans)
    return whole or _plays_on(path, key, known)


def _plays_on(path: Path, key: Key, known: Fingerprint) -> bool:
    """Whether the steps of an episode that was cut are those of a longer one in its place."""
    record = np.frombuffer(known.record, RECORD)[0]
    if record["ending"] not in (Ending.CUT, Ending.SALVAGED):
        return False
    segment, start = key
    with storage.open(path) as store:
        schema = store.schema
    kept = {leaf.name for leaf in schema.observation}
    kept |= {column.name for item in schema.info for column in item.columns}
    closing = {"behaviour": np.nan, "policy_update": -1, "kind": RowKind.CLOSING}
    sums = []
    for column in schema.columns:
        rows = np.array(_column(path, segment, column)[start : start + int(record["length"]) + 1])
        if column.name not in kept:
            rows[-1] = closing.get(column.name, 0)
        _end_again(rows, column.name, int(record["ending"]))
        sums.append(crc32c(rows))
    return tuple(sums) == known.checksums


def orphan_episodes(path: Path, folder: Path, key: Key) -> Iterator[Fingerprint]:
    """What a folder below orphans/ has from a row on: a whole segment, or what was cut off one.

    Of an episode that was open at the position, only what came after it was cut off.
    """
    with storage.open(path) as store:
        columns = store.schema.columns
    dtype = record_dtype(len(columns))
    if (folder / "log").exists():
        raw = (folder / "log").read_bytes()
        tail, first = raw[int.from_bytes(raw[12:16], "little") :], 0
    elif (folder / "orphan.json").exists():  # the last file of a cut; without it, nothing was cut
        tail = (folder / "log.tail").read_bytes()
        first = json.loads((folder / "orphan.json").read_text())["first_row"]
    else:
        return
    segment, start = key
    records = np.frombuffer(tail[: len(tail) // dtype.itemsize * dtype.itemsize], dtype)
    for record in records[(records["start"] == start) & (records["kind"] == RecordKind.EPISODE)]:
        end = start + int(record["length"]) + 1
        sums = []
        for column in columns:
            rows = np.array(_orphan_rows(folder, column)[max(start - first, 0) : end - first])
            if start < first:
                rows = np.concatenate([_column(path, segment, column)[start:first], rows])
                _end_again(rows, column.name, int(record["ending"]))
            sums.append(crc32c(np.ascontiguousarray(rows)))
        fields = np.zeros(1, RECORD)
        take_fields(fields, record[None])
        yield Fingerprint(fields[0].tobytes(), tuple(sums))


def _end_again(rows: np.ndarray[Any, Any], name: str, ending: int) -> None:
    """Set the flag of the last step, which a rewind clears where that step is not cut off."""
    if name in ("terminated", "truncated"):
        rows[-2] = (ending == Ending.TERMINATED) == (name == "terminated")


def _orphan_rows(folder: Path, column: Column) -> np.ndarray[Any, Any]:
    cut = folder / f"{column.name}.npy"
    if cut.exists():
        return np.load(cut, mmap_mode="r")
    return _rows(folder / "steps" / column.name, column)


def _column(path: Path, segment: int, column: Column) -> np.ndarray[Any, Any]:
    return _rows(path / "steps.zarr" / f"{segment:06d}" / column.name, column)


def _rows(folder: Path, column: Column) -> np.ndarray[Any, Any]:
    """All allocated rows of a column's folder."""
    described = json.loads((folder / "zarr.json").read_text())
    capacity = described["chunk_grid"]["configuration"]["chunk_shape"][0]
    file = ColumnFile(folder, column, capacity)
    return file.map(file.allocated(), writable=False)
