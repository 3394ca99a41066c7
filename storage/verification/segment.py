"""The examination of one segment: its log, columns, metadata and table, each on its own."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

from storage.column_file import ColumnFile
from storage.layout import INNER_ROWS, StorePaths
from storage.schema import Column
from storage.verification.behaviour_rules import behaviour_rules
from storage.verification.blocks import row_blocks
from storage.verification.columns import ColumnCheck, check_column
from storage.verification.findings import SegmentCheck, finding, hidden_finding
from storage.verification.inventory import half_dropped
from storage.verification.live_writers import has_live_writer
from storage.verification.log_faults import read_log, record_faults
from storage.verification.metadata import Documents, judge, read_documents, shown_rows
from storage.verification.open_rows import look_behind
from storage.verification.overlays import check_overlay_segment
from storage.verification.raw_log import RawLog
from storage.verification.regular_files import CannotJudgeError
from storage.verification.row_places import RowPlaces
from storage.verification.rules import Rule, rules_of
from storage.verification.store_facts import StoreFacts
from storage.verification.tables import judge_table, read_table

__all__ = ["check_segment"]


_LOOKS = 3
_PAUSE = 0.02
"""Seconds in which a rewind goes on to publish what it cut."""


def check_segment(
    facts: StoreFacts,
    segment: int,
    *,
    overlays: bool = True,
    log: bytes | None = None,
    locked: bool = False,
) -> SegmentCheck:
    """Examine one segment and its overlays; it never raises for what it finds there.

    With ``log``, as if that were in the log's file; ``locked`` says that the caller holds the
    segment's lock, so that nobody else is at it.

    Another look is taken before anything is called damaged that somebody may have been at.
    """
    for look in range(_LOOKS):
        before = _stamps(facts.paths, segment)
        check = _Examination(facts, segment, overlays, log, locked=locked).look()
        if locked or log is not None or check.hidden or not check.suspect:
            break
        if not any(map(os.path.lexists, (facts.paths.log(segment), facts.paths.segment(segment)))):
            return SegmentCheck(segment)  # dropped, or taken out by a rewind, meanwhile
        live = look == 0 and (check.live or _may_be_held(facts.paths, segment))
        if not live and _stamps(facts.paths, segment) == before:
            break
        time.sleep(_PAUSE)
    return check


def _stamps(paths: StorePaths, segment: int) -> list[tuple[int, ...] | None]:
    """What changes when a writer, a rewind or a repair is at a segment."""
    return [_stamp(path) for path in (paths.log(segment), paths.lock(segment))]


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _may_be_held(paths: StorePaths, segment: int) -> bool:
    try:
        return has_live_writer(paths, segment)
    except CannotJudgeError:
        return True


def _table_fault(table: bytes | str | None, documents: Documents, log: RawLog, live: bool) -> str:
    """What is wrong with the episode table; it is there before the first row is shown."""
    if isinstance(table, str):
        return table
    if table is not None:
        return judge_table(table, log)
    return "it is missing" if not live and shown_rows(documents) > 0 else ""


class _Examination:
    def __init__(
        self,
        facts: StoreFacts,
        segment: int,
        overlays: bool,
        log: bytes | None = None,
        *,
        locked: bool = False,
    ) -> None:
        self._content = log
        self._locked = locked
        self._facts = facts
        self._overlays = overlays
        self._paths = facts.paths
        self._columns = facts.schema.columns
        self._folder = facts.paths.segment(segment)
        self._check = SegmentCheck(segment)
        self._name = self._folder.name

    def look(self) -> SegmentCheck:
        """What ``run`` gives, and where that ends early, what hides the rest."""
        try:
            return self.run()
        except CannotJudgeError as error:
            self._hidden(error)
        except OSError as error:
            path = Path(error.filename) if isinstance(error.filename, str) else self._folder
            self._hidden(CannotJudgeError(path, error.strerror or str(error)))
        return self._check

    def _hidden(self, error: CannotJudgeError) -> None:
        found = hidden_finding(error, self._paths.root, self._check.segment)
        if found not in self._check.findings:
            self._check.findings.append(found)

    def _live(self) -> bool:
        """Whether somebody else has the segment open for writing."""
        return not self._locked and has_live_writer(self._paths, self._check.segment)

    def run(self) -> SegmentCheck:
        """Everything in the order that a live writer allows: what is derived is read first."""
        check = self._check
        check.live = self._live()
        documents = read_documents(self._folder, self._columns)
        table = read_table(self._paths, check.segment)
        log = self._log()
        if log is None:
            return self._check
        places = RowPlaces(log)
        check.episodes, check.rows = len(places), log.rows
        check.steps = int(places.records["length"].sum())
        for kind, what in record_faults(log, live=check.live):
            self._add(kind, f"log/{self._name}.log", what)
        if self._folder.is_symlink() or not self._folder.is_dir():
            if not check.live:
                self._add(
                    "log-without-segment",
                    f"log/{self._name}.log",
                    "it has no folder of its own",
                    places,
                )
            return check
        self._judge_documents(documents, log)
        fault = _table_fault(table, documents, log, check.live)
        if fault:
            self._add("episode-table", f"episodes/{self._name}.arrow", fault)
        for place, column in enumerate(self._columns):
            try:
                self._judge_column(column, places, places.records["column_crc"][:, place], log)
            except CannotJudgeError as error:
                self._hidden(error)
        self._judge_open(log)
        self._judge_limit(places)
        if self._overlays:
            capacity, rows = log.header.capacity, None if check.live else log.rows
            found, size = check_overlay_segment(self._facts, check.segment, capacity, rows)
            check.findings += found
            check.bytes_read += size
        return check

    def _add(self, kind: str, file: str, what: str, places: RowPlaces | None = None) -> None:
        """A finding; with ``places``, one that all episodes suffer from."""
        ordinals = [] if places is None else places.ordinals(range(len(places)))
        segment = self._check.segment
        of = None if places is None else len(places)
        self._check.findings.append(
            finding(kind, file, what, segment=segment, ordinals=ordinals, of=of)
        )

    def _log(self) -> RawLog | None:
        try:
            log = read_log(self._facts, self._check.segment, self._content)
        except FileNotFoundError:
            self._without_log()
            return None
        if isinstance(log, RawLog):
            return log
        self._add(log[0], f"log/{self._name}.log", log[1])
        return None

    def _without_log(self) -> None:
        """A folder is renamed into place before its log is: then its writer lives."""
        if self._live():
            self._check.live = True
        elif not self._locked and self._paths.log(self._check.segment).exists():
            # its writer was just then at it
            self._check = _Examination(self._facts, self._check.segment, self._overlays).look()
        elif half_dropped(self._paths, self._check.segment):
            self._add("staging", f"steps.zarr/{self._name}", "half dropped")
        elif self._is_unborn():
            self._add("staging", f"steps.zarr/{self._name}", "has no log yet, and no row")
        else:
            what = "it has no log, so that nobody knows which of its rows count"
            self._add("segment-without-log", f"steps.zarr/{self._name}", what)

    def _is_unborn(self) -> bool:
        """Whether it looks as before its first row: all columns are there, and end alike."""
        files = [ColumnFile(self._folder / c.name, c, INNER_ROWS).path for c in self._columns]
        try:
            return len({file.lstat().st_size for file in files}) == 1
        except OSError:
            return False

    def _judge_documents(self, documents: Documents, log: RawLog) -> None:
        spoken = np.concatenate([log.episodes, log.voids])
        ends = {0, *(spoken["start"] + spoken["length"] + 1).tolist()}
        found = judge(documents, self._columns, log.header.capacity, log.rows, ends)
        for kind, file, what in found:
            self._add(kind, f"steps.zarr/{self._name}/{file}", what)

    def _judge_column(
        self, column: Column, places: RowPlaces, expected: np.ndarray, log: RawLog
    ) -> None:
        file = ColumnFile(self._folder / column.name, column, log.header.capacity)
        rules = self._rules(column, places, log)
        self._gather(check_column(file, places, expected, rules), file, places)

    def _rules(self, column: Column, places: RowPlaces, log: RawLog) -> list[Rule]:
        schema = self._facts.schema
        rules = rules_of(column, schema, places)
        if column.name == "behaviour":
            kinds = self._small("behaviour_kind", places.rows, log)
            rules += behaviour_rules(schema, places, kinds)
        return rules

    def _small(self, name: str, rows: int, log: RawLog) -> np.ndarray:
        """A column of one byte a row, as far as it can be read; 255 where not."""
        column = self._facts.schema.column(name)
        file = ColumnFile(self._folder / name, column, log.header.capacity)
        values = np.full(rows, 255, np.uint8)
        try:
            for block in row_blocks(file.path, column, file.capacity, rows):
                if not block.error:
                    values[block.first : block.end] = block.rows
        except OSError:
            pass  # the column's own examination tells
        return values

    def _gather(self, found: ColumnCheck, file: ColumnFile, places: RowPlaces) -> None:
        self._check.bytes_read += found.bytes_read
        path = file.path.relative_to(self._paths.root).as_posix()
        for fault in found.faults:
            self._check.findings.append(
                finding(
                    fault.kind,
                    path,
                    fault.what,
                    segment=self._check.segment,
                    ordinals=places.ordinals(sorted(fault.episodes)),
                    rows=(fault.first, fault.end) if fault.end > 0 else None,
                    of=len(places),
                    remedy=fault.remedy,
                )
            )

    def _judge_open(self, log: RawLog) -> None:
        """What a writer left that is gone: an open episode, and the note about it."""
        check = self._check
        if check.live:
            return
        behind = look_behind(self._facts, check.segment, self._folder, log)
        if behind.note_fault:
            self._add("open-note", f"log/{self._name}.open", behind.note_fault)
        if behind.lost:
            check.lost_episodes = behind.lost_episodes
            found = finding(
                "lost-records",
                f"log/{self._name}.log",
                f"it lacks the records of episodes that were committed: {behind.lost}",
                segment=check.segment,
                rows=(log.rows, behind.end),
            )
            check.findings.append(found)
        elif behind.steps and not log.sealed:
            what = f"{behind.steps:,} steps are not committed"
            self._add("open-episode", f"steps.zarr/{self._name}", what)

    def _judge_limit(self, places: RowPlaces) -> None:
        limit = self._facts.spec.max_episode_steps
        if limit is None:
            return
        longer = np.flatnonzero(places.records["length"] > limit)
        if len(longer):
            longest = int(places.records["length"].max())
            what = f"episodes of up to {longest:,} steps, max_episode_steps is {limit:,}"
            self._check.findings.append(
                finding(
                    "longer-than-declared",
                    f"log/{self._name}.log",
                    what,
                    segment=self._check.segment,
                    ordinals=places.ordinals(longer),
                    of=len(places),
                )
            )
