"""A writer's lanes to a position and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from storage.checksum import extend_crc32c
from storage.errors import CheckpointError
from storage.lane import Lane
from storage.layout import StorePaths
from storage.open_episode import OpenEpisodeNote, write_note
from storage.position import LanePosition, OpenPosition, SegmentPosition, StorePosition
from storage.schema import Schema
from storage.segment_writer import SegmentWriter
from storage.syncing import SyncRule

__all__ = ["capture", "restore"]


def _capture_lane(line: Lane) -> LanePosition:
    opened = None
    if line.is_open:
        steps = line.row - line.start
        checksum = _open_checksum(line)
        opened = OpenPosition(
            line.start, steps, line.seed, line.lane_episode, line.begin_time, checksum
        )
    if line.segment is None:
        return LanePosition(None, 0, 0, line.next_episode, opened)
    segment = line.segment
    return LanePosition(segment.id, segment.sequence, segment.rows, line.next_episode, opened)


def _open_checksum(line: Lane) -> int:
    """CRC32C over the open episode's whole rows and the observation after them."""
    segment, checksum = line.bound(), 0
    seen = {leaf.name for leaf in line.schema.observation}
    for name, array in segment.arrays.items():
        rows = array[line.start : line.row + (name in seen)]
        checksum = extend_crc32c(checksum, np.ascontiguousarray(rows).tobytes())
    return checksum


def capture(
    store_uuid: str,
    run: str,
    lanes: Sequence[Lane],
    segments: Mapping[int, SegmentPosition],
    first_segment: int,
) -> StorePosition:
    """The position of all lanes; every pending commit must have been settled.

    ``first_segment`` is an id that no segment of the writer is below. Takes time by the open
    episodes and the number of segments, whatever the store holds.
    """
    return StorePosition(
        store_uuid=store_uuid,
        run=run,
        lanes=tuple(map(_capture_lane, lanes)),
        segments=tuple(segments[segment] for segment in sorted(segments)),
        next_segment=max([first_segment, *(segment + 1 for segment in segments)]),
    )


def restore(
    paths: StorePaths,
    schema: Schema,
    lanes: Sequence[Lane],
    position: StorePosition,
    sync: SyncRule | None,
) -> None:
    """Take up the position's segments and open episodes; on an error, none is held."""
    if len(lanes) != len(position.lanes):
        raise CheckpointError(
            f"the position has {len(position.lanes)} lanes, the writer {len(lanes)}; continue with "
            "the same number of lanes"
        )
    try:
        for line, kept in zip(lanes, position.lanes, strict=True):
            _restore_lane(paths, schema, line, kept, sync)
    except BaseException:
        for line in lanes:
            if line.segment is not None:
                line.segment.release()
                line.unbind()
        raise


def _restore_lane(
    paths: StorePaths, schema: Schema, line: Lane, kept: LanePosition, sync: SyncRule | None
) -> None:
    line.next_free = kept.next_episode
    if kept.segment is None:
        return
    segment = SegmentWriter.open(paths, schema, kept.segment, sync)
    line.bind(segment)
    if (segment.sequence, segment.rows) != (kept.sequence, kept.rows):
        raise CheckpointError(
            f"segment {kept.segment} of {paths.root} holds {segment.sequence} records, the "
            f"position {kept.sequence}; rewind the store to the position first (storage.rewind)"
        )
    if kept.open is not None:
        note = OpenEpisodeNote(
            kept.open.start, kept.open.seed, kept.open.lane_episode, kept.open.begin_time
        )
        segment.ensure(kept.open.start + kept.open.steps + 2)
        line.allocated = segment.allocated
        write_note(paths.open_episode(segment.id), note)
        line.resume(note, kept.open.steps)
        if _open_checksum(line) != kept.open.checksum:
            raise CheckpointError(
                f"the {kept.open.steps:,} rows of the open episode in segment {kept.segment} of "
                f"{paths.root} are not those that the position names: they were changed, or lost "
                "when the machine went down, or a copy was made. Go on from an older checkpoint, "
                "or start a new run"
            )
    segment.take_up()
