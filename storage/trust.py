"""Which episodes of a segment can be trusted after the machine went down while it was open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from storage.checksum import crc32c
from storage.column_file import ColumnFile
from storage.mapping import drop_pages
from storage.segment import header_of

if TYPE_CHECKING:
    from storage.commit_log import CommitLog
    from storage.layout import StorePaths
    from storage.schema import Schema

__all__ = ["failing_episodes"]


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
