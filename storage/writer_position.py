"""A writer's lanes to a position and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from storage.errors import CheckpointError
from storage.lane import Lane
from storage.layout import StorePaths
from storage.lock import next_segment
from storage.open_episode import OpenEpisodeNote, write_note
from storage.position import LanePosition, OpenPosition, StorePosition
from storage.schema import Schema
from storage.segment_writer import SegmentWriter

__all__ = ["capture", "restore"]


def _capture_lane(line: Lane) -> LanePosition:
    opened = None
    if line.is_open:
        steps = line.row - line.start
        opened = OpenPosition(line.start, steps, line.seed, line.lane_episode, line.begin_time)
    if line.segment is None:
        return LanePosition(None, 0, 0, line.next_episode, opened)
    segment = line.segment
    return LanePosition(segment.id, segment.sequence, segment.rows, line.next_episode, opened)


def capture(
    paths: StorePaths, store_uuid: str, run: str, lanes: Sequence[Lane], segments: Mapping[int, int]
) -> StorePosition:
    """The position of all lanes; every pending commit must have been settled."""
    return StorePosition(
        store_uuid=store_uuid,
        run=run,
        lanes=tuple(map(_capture_lane, lanes)),
        segments=tuple(sorted(segments.items())),
        next_segment=next_segment(paths),
    )


def restore(
    paths: StorePaths, schema: Schema, lanes: Sequence[Lane], position: StorePosition
) -> None:
    """Take up the position's segments and open episodes; on an error, none is held."""
    if len(lanes) != len(position.lanes):
        raise CheckpointError(
            f"the position has {len(position.lanes)} lanes, the writer {len(lanes)}; continue with "
            "the same number of lanes"
        )
    try:
        for line, kept in zip(lanes, position.lanes, strict=True):
            _restore_lane(paths, schema, line, kept)
    except BaseException:
        for line in lanes:
            if line.segment is not None:
                line.segment.release()
                line.unbind()
        raise


def _restore_lane(paths: StorePaths, schema: Schema, line: Lane, kept: LanePosition) -> None:
    line.next_free = kept.next_episode
    if kept.segment is None:
        return
    segment = SegmentWriter.open(paths, schema, kept.segment)
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
