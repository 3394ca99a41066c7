"""Episodes as records for us and as Arrow tables for everybody else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from storage.atomic import write_atomic
from storage.layout import Ending
from storage.log_header import LogHeader
from storage.log_record import RECORD

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["EpisodeRecord", "episode_table", "write_episode_table"]


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """A committed episode; (segment, ordinal) is its identity."""

    segment: int
    ordinal: int
    start: int
    """Row of its first step within the segment."""
    length: int
    """Steps; the closing row is row ``start + length``."""
    ending: Ending
    episode_return: float
    """Undiscounted sum of the raw rewards."""
    seed: int | None
    """Seed of its reset, None when it was not told."""
    lane: int
    lane_episode: int
    """Number of the episode within its lane."""

    @classmethod
    def of(cls, header: LogHeader, records: np.ndarray[Any, Any], index: int) -> EpisodeRecord:
        """The index-th of a log's episodes as plain values."""
        row = records[index]
        return cls(
            segment=header.segment,
            ordinal=int(row["ordinal"]),
            start=int(row["start"]),
            length=int(row["length"]),
            ending=Ending(int(row["ending"])),
            episode_return=float(row["return"]),
            seed=int(row["seed"]) if row["seed_known"] else None,
            lane=header.lane,
            lane_episode=int(row["lane_episode"]),
        )


def _endings(codes: np.ndarray[Any, Any]) -> pa.Array:
    import pyarrow as pa

    names = ["unknown"] + [ending.name.lower() for ending in Ending]
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), pa.array(names)).cast(
        pa.string()
    )


def _segment_table(header: LogHeader, records: np.ndarray[Any, Any]) -> pa.Table:
    import pyarrow as pa

    count = len(records)

    def plain(name: str) -> pa.Array:
        return pa.array(np.ascontiguousarray(records[name]))

    def time(name: str) -> pa.Array:
        return plain(name).cast(pa.timestamp("ns", tz="UTC"))

    columns = {
        "segment": pa.array(np.full(count, header.segment, dtype=np.int64)),
        "ordinal": pa.array(records["ordinal"].astype(np.int64)),
        "start": plain("start"),
        "length": plain("length"),
        "ending": _endings(records["ending"]),
        "return": plain("return"),
        "seed": pa.array(np.ascontiguousarray(records["seed"]), mask=~records["seed_known"]),
        "lane": pa.array(np.full(count, header.lane, dtype=np.int64)),
        "lane_episode": plain("lane_episode"),
        "run": pa.array(np.full(count, header.run, dtype=object), pa.string()),
        "first_policy_update": plain("first_policy_update"),
        "last_policy_update": plain("last_policy_update"),
        "begin_time": time("begin_time"),
        "end_time": time("end_time"),
    }
    return pa.table(columns)


def episode_table(logs: Sequence[tuple[LogHeader, np.ndarray[Any, Any]]]) -> pa.Table:
    """All episodes of the given segments, one row each, in order (pyarrow.Table)."""
    import pyarrow as pa

    empty = LogHeader("", 0, [], 0, "", 0)
    parts = [_segment_table(header, records) for header, records in logs]
    return pa.concat_tables([_segment_table(empty, np.zeros(0, RECORD)), *parts])


def write_episode_table(
    path: Path, header: LogHeader, records: np.ndarray[Any, Any], staging: Path
) -> None:
    """Replace a segment's Arrow IPC file."""
    import pyarrow as pa

    table = _segment_table(header, records).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    write_atomic(path, sink.getvalue().to_pybytes(), staging)
