"""Mend one segment in an order that a kill may cut anywhere.

First everything that will change is copied to quarantine. Then files are made whole, the rows of
episodes that go are marked as never written, and one rename of the log takes them out: up to there
a reader sees the damage as before. What is derived from the log comes last. Whatever is left undone
is found, and done, by the next repair.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np

from storage.atomic import disk_full_as_error, write_atomic
from storage.checksum import crc32c
from storage.column_file import ColumnFile
from storage.commit_log import CommitLog
from storage.containment import open_regular
from storage.episode_table import write_episode_table
from storage.layout import INNER_ROWS, RowKind, align_up
from storage.open_episode import create_note
from storage.repairing.mended_log import lost_rows, mended_log
from storage.repairing.plan import SegmentPlan
from storage.repairing.quarantine import Kept, Quarantine, whole_file
from storage.repairing.rows import RowBytes
from storage.segment import header_of
from storage.segment_files import publish_arrays
from storage.syncing import sync_path
from storage.verification.blocks import read_head
from storage.verification.overlays import overlays_of
from storage.verification.raw_log import RawLog, parse_raw_log, read_log_bytes
from storage.verification.shard import shard_head
from storage.verification.store_facts import StoreFacts

__all__ = ["mend_segment", "move_overlays", "set_segment_aside"]

_MADE_AGAIN = ("shard-index", "missing-column", "short-column", "unreadable-column")
_PUBLISHED = frozenset({"group-metadata", "array-metadata", "missing-column"})


def set_segment_aside(facts: StoreFacts, plan: SegmentPlan) -> Path:
    """Move all files of a segment to quarantine; its lock stays, so that the id is not reused."""
    paths, segment = facts.paths, plan.segment
    sources = {
        **{f"overlay.{each.stem}": each / paths.segment(segment).name for each in _overlays(facts)},
        "episodes.arrow": paths.episode_table(segment),
        "steps": paths.segment(segment),
        "open": paths.open_episode(segment),
        "log": paths.log(segment),  # last: while it is there, a repair goes on
    }
    return _move(facts, plan, sources)


def move_overlays(facts: StoreFacts, plan: SegmentPlan) -> Path:
    """Move what damaged overlays hold of the segment to quarantine."""
    name = facts.paths.segment(plan.segment).name
    overlays = facts.paths.overlays
    sources = {f"overlay.{each}": overlays / f"{each}.zarr" / name for each in plan.overlays}
    return _move(facts, plan, sources)


def _overlays(facts: StoreFacts) -> list[Path]:
    return overlays_of(facts)


def _move(facts: StoreFacts, plan: SegmentPlan, sources: dict[str, Path]) -> Path:
    return Quarantine(facts.paths, plan.segment).move(sources, list(plan.why))


def mend_segment(facts: StoreFacts, plan: SegmentPlan) -> Path | None:
    """Take damaged episodes out and derive again what is derived; gives the quarantine folder."""
    return _Mending(facts, plan).run()


class _Mending:
    def __init__(self, facts: StoreFacts, plan: SegmentPlan) -> None:
        self._facts = facts
        self._plan = plan
        self._paths = facts.paths
        self._folder = facts.paths.segment(plan.segment)
        path = facts.paths.log(plan.segment)
        content, excess = read_log_bytes(path) if plan.corrected is None else (plan.corrected, 0)
        self._log: RawLog = parse_raw_log(content, excess, path)
        self._files = {
            column.name: ColumnFile(self._folder / column.name, column, self._log.header.capacity)
            for column in facts.schema.columns
        }
        self._spans = self._rows_that_go()

    def run(self) -> Path | None:
        kept = Quarantine(self._paths, self._plan.segment).keep(self._parts(), list(self._plan.why))
        if self._plan.damaged or self._plan.kinds & {*_MADE_AGAIN, "log-record", "log-order"}:
            self._make_files_whole()
        self._unwrite()
        if self._plan.rewrites_log:
            self._replace_log()
        self._derive()
        return kept

    def _rows_that_go(self) -> list[tuple[int, int]]:
        """Rows [first, end) of every episode that counts for nobody afterwards."""
        records = self._log.episodes
        go = records[np.isin(records["ordinal"], list(self._plan.damaged))]
        spans = [(int(each["start"]), int(each["start"] + each["length"]) + 1) for each in go]
        spans += lost_rows(self._log)
        if "void-rows" in self._plan.kinds:
            voids = self._log.voids
            spans += [
                (int(each["start"]), int(each["start"] + each["length"]) + 1) for each in voids
            ]
        if self._plan.lost_rows is not None:
            spans.append(self._plan.lost_rows)
        return sorted(span for span in spans if span[0] < span[1])

    def _parts(self) -> dict[str, Kept]:
        """Everything that will change, by a key that tells it from anything else."""
        parts: dict[str, Kept] = {}
        if self._plan.rewrites_log:
            parts.update(whole_file(self._paths.log(self._plan.segment), self._paths.root, 2**26))
            self._add_file(parts, self._paths.episode_table(self._plan.segment))
        for name in self._plan.files:
            path = self._paths.root / name
            if path.name.startswith("c."):
                self._add(parts, name, "head", _head(path, self._log.header.capacity))
            else:
                self._add_file(parts, path)
        if self._plan.lost_rows is not None:  # the note tells the last one's seed
            self._add_file(parts, self._paths.open_episode(self._plan.segment))
        for first, end in self._spans:
            rows = {name: RowBytes(file, first, end) for name, file in self._files.items()}
            sum_ = 0
            for name, each in rows.items():
                if name != "kind":  # which a killed repair may have changed already
                    sum_ = each.checksum(sum_)
            files = {f"rows-{first}-{end}/{name}.bin": each for name, each in rows.items()}
            parts[f"rows {first} {end} {sum_:08x}"] = files
        return parts

    def _add_file(self, parts: dict[str, Kept], path: Path) -> None:
        parts.update(whole_file(path, self._paths.root))

    def _add(self, parts: dict[str, Kept], name: str, part: str, data: bytes) -> None:
        parts[f"{part} {name} {crc32c(data):08x}"] = {f"{name}.{part}": data}

    def _make_files_whole(self) -> None:
        """Every column is a file with its index, as long as its rows and those of their chunk."""
        rows = align_up(self._log.rows, INNER_ROWS)
        for file in self._files.values():
            self._clear(file.path.parent, stat.S_ISDIR)
            with disk_full_as_error(file.path, file.offset):
                file.path.parent.mkdir(exist_ok=True)
                self._clear(file.path, stat.S_ISREG)
                if not file.path.exists():
                    file.create()
            _write_at(file.path, 0, shard_head(file.column, file.capacity))
            if self._log.rows:
                file.allocate(rows)

    def _clear(self, path: Path, expected: Callable[[int], bool]) -> None:
        """Move what is no file, or no folder, from where one belongs."""
        if os.path.lexists(path) and not expected(path.lstat().st_mode):
            inside = path.is_relative_to(self._folder)
            name = path.relative_to(self._folder if inside else self._paths.root)
            _move(self._facts, self._plan, {name.as_posix().replace("/", "."): path})

    def _unwrite(self) -> None:
        """Mark rows that go as never written."""
        file = self._files["kind"]
        for first, end in self._spans:
            data = bytes([RowKind.NEVER_WRITTEN]) * (end - first)
            _write_at(file.path, file.offset + first, data)
        if self._spans:
            sync_path(file.path)

    def _replace_log(self) -> None:
        path = self._paths.log(self._plan.segment)
        write_atomic(
            path, mended_log(self._log, self._plan.damaged), self._paths.staging, sync=True
        )
        sync_path(path)
        sync_path(path.parent)

    def _derive(self) -> None:
        plan, paths = self._plan, self._paths
        log = CommitLog(paths.log(plan.segment))
        if plan.rewrites_log or plan.kinds & _PUBLISHED:
            columns, capacity = self._facts.schema.columns, self._log.header.capacity
            for folder in (self._folder, *(file.path.parent for file in self._files.values())):
                self._clear(folder / "zarr.json", stat.S_ISREG)
            publish_arrays(self._folder, columns, log.rows, capacity, paths.staging)
        if plan.rewrites_log or "episode-table" in plan.kinds:
            table = paths.episode_table(plan.segment)
            self._clear(table, stat.S_ISREG)
            write_episode_table(table, header_of(log), log.records, paths.staging)
        if plan.kinds & {"open-note", "lost-records"}:
            note = paths.open_episode(plan.segment)
            self._clear(note, stat.S_ISREG)
            note.unlink(missing_ok=True)  # perhaps quarantine has the same file by another name
            create_note(note)


def _head(path: Path, capacity: int) -> bytes:
    try:
        return read_head(path, capacity)
    except OSError:
        return b""


def _write_at(path: Path, at: int, data: bytes) -> None:
    descriptor = open_regular(path, os.O_RDWR)
    try:
        os.pwrite(descriptor, data, at)
    finally:
        os.close(descriptor)
