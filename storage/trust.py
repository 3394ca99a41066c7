"""Which episodes can be trusted after the machine went down while they were written.

The kernel writes pages back when it likes, within half a minute or so. So rows may be gone that a
process stored, and that their log speaks of: in segments that were open, and in sealed ones that
had not been brought to the disk yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from storage.checksum import crc32c
from storage.column_file import ColumnFile
from storage.lock import is_vouched
from storage.mapping import drop_pages
from storage.segment import header_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from storage.commit_log import CommitLog
    from storage.layout import StorePaths
    from storage.schema import Schema

__all__ = ["distrust", "failing_episodes", "questionable"]


def failing_episodes(paths: StorePaths, schema: Schema, log: CommitLog) -> list[int]:
    """Ordinals of the committed episodes whose rows do not have their record's checksums."""
    records, sums = log.records, log.column_checksums
    header = header_of(log)
    good = np.ones(len(records), bool)
    for place, column in enumerate(schema.columns):
        file = ColumnFile(paths.segment(header.segment) / column.name, column, header.capacity)
        rows = file.allocated() if file.path.is_file() else 0
        if not rows:
            return [int(ordinal) for ordinal in records["ordinal"]]
        array = file.map(rows, writable=False)
        for i in np.flatnonzero(good):
            start, end = int(records["start"][i]), int(records["start"][i] + records["length"][i])
            good[i] = end < rows and crc32c(array[start : end + 1]) == sums[i, place]
        drop_pages(array)
    return [int(ordinal) for ordinal in records["ordinal"][~good]]


def questionable(paths: StorePaths, logs: Mapping[int, CommitLog]) -> list[int]:
    """Segments whose rows may have been lost with the machine, and that nobody vouches for.

    Where no lock file is there, as in a copy that left them out, sealed segments are trusted.
    """
    return [
        segment
        for segment, log in logs.items()
        if len(log.records)
        and not is_vouched(paths.lock(segment))
        and not (log.sealed and not paths.lock(segment).exists())
    ]


def distrust(paths: StorePaths, schema: Schema, logs: Mapping[int, CommitLog]) -> dict[int, int]:
    """Have logs show no episode that was lost; how many they are, by segment.

    Of a segment that is dropped meanwhile, the log first, nothing is said: it is not there.
    """
    lost = {}
    for segment in questionable(paths, logs):
        try:
            failing = failing_episodes(paths, schema, logs[segment])
        except FileNotFoundError:
            if paths.log(segment).exists():
                raise
            continue
        if failing and paths.log(segment).exists():
            logs[segment].distrust(failing)
            lost[segment] = len(failing)
    return lost
