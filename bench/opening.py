"""Opening: the time that a store of many episodes takes to open, whole or in many segments."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import numpy as np
from gymnasium.spaces import Box, Discrete

import storage
from bench.effort import Effort
from bench.figure import Figure
from bench.timing import alternate, microseconds
from storage.checksum import crc32c
from storage.layout import INNER_ROWS, Ending, align_up
from storage.log_record import RecordKind, record_dtype
from storage.segment_writer import SegmentWriter

__all__ = ["SHAPES", "make_store", "measure"]

SHAPES: Final = ((100_000, 1), (100_000, 300), (1_000_000, 1), (1_000_000, 3_000))
"""Episodes and segments."""
_MOST: Final = {100_000: 1e6, 1_000_000: 3e6}
"""Microseconds that opening may take, by episodes."""


def measure(folder: Path, effort: Effort) -> list[Figure]:
    """Opening for reading, beside reading the bytes of all logs."""
    figures = []
    for episodes, segments in SHAPES:
        path = folder / f"{episodes}-{segments}"
        make_store(path, episodes, segments)
        samples = alternate(
            {
                "open": microseconds(lambda path=path: storage.open(path).close(), calls=1),  # type: ignore[misc]
                "read": microseconds(lambda path=path: _read_logs(path), calls=1),  # type: ignore[misc]
            },
            effort.repeats(10),
        )
        figures.append(
            Figure.of(
                f"open {episodes:,} episodes in {segments:,} segment{'s' * (segments > 1)}",
                "µs",
                samples["open"],
                samples["read"],
                "reading the logs' bytes",
                most=_MOST[episodes],
                details={"episodes": episodes, "segments": segments},
            )
        )
    return figures


def make_store(path: Path, episodes: int, segments: int) -> None:
    """A store of one-step episodes; its rows are holes in the files, all zeros."""
    spec = storage.EnvironmentSpec("Made-v0", Box(-1, 1, (1,), np.float64), Discrete(2))
    store = storage.create(path, spec)
    each = -(-episodes // segments)
    capacity = align_up(2 * each + 2, INNER_ROWS)
    for segment, begun in enumerate(range(0, episodes, each)):
        made = SegmentWriter.create(
            store.paths, store.schema, store.uuid, "made", 0, capacity, first=segment
        )
        try:
            _fill(store, segment, capacity, min(each, episodes - begun))
        finally:
            made.release()
    store.close()


def _fill(store: storage.Store, segment: int, capacity: int, episodes: int) -> None:
    """Give a segment so many records, its seal, and files that are long enough."""
    for column in store.schema.columns:
        (file,) = (store.paths.segment(segment) / column.name).glob("c.*")
        os.truncate(file, file.stat().st_size + capacity * column.row_bytes)
    records = _records(episodes, len(store.schema.columns))
    with store.paths.log(segment).open("ab") as log:
        log.write(records.tobytes())


def _records(episodes: int, columns: int) -> np.ndarray[Any, Any]:
    records = np.zeros(episodes + 1, record_dtype(columns))
    number = np.arange(episodes + 1)
    records["kind"], records["ending"] = RecordKind.EPISODE, Ending.TERMINATED
    records["sequence"], records["ordinal"] = number, number
    records["start"], records["length"] = 2 * number, 1
    records["begin_time"] = records["end_time"] = number
    records[-1:]["kind"], records[-1:]["ending"], records[-1:]["length"] = RecordKind.SEAL, 0, 0
    size, data = records.itemsize, records.tobytes()
    records["crc"] = [crc32c(data[at : at + size - 4]) for at in range(0, len(data), size)]
    return records


def _read_logs(path: Path) -> int:
    return sum(len(file.read_bytes()) for file in (path / "log").glob("*.log"))
