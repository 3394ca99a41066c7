"""Where exactly a writer stands: what a checkpoint keeps to go on, and a rewind goes back to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
from typing import Any

__all__ = ["LanePosition", "OpenPosition", "SegmentPosition", "StorePosition"]


@dataclass(frozen=True, slots=True)
class OpenPosition:
    """The open episode of a lane."""

    start: int
    steps: int
    seed: int | None
    lane_episode: int
    begin_time: int
    checksum: int
    """CRC32C of its rows so far, column after column, and of the observation after them."""


@dataclass(frozen=True, slots=True)
class SegmentPosition:
    """How far a segment's log went."""

    id: int
    records: int
    checksum: int
    """CRC32C of the log's bytes up to there, which hold the checksums of all rows."""


@dataclass(frozen=True, slots=True)
class LanePosition:
    """One lane: its segment, how far that is committed, and the open episode."""

    segment: int | None
    sequence: int
    """Records in the segment's log."""
    rows: int
    """Committed rows of the segment."""
    next_episode: int
    """Number of the lane's next episode."""
    open: OpenPosition | None


@dataclass(frozen=True, slots=True)
class StorePosition:
    """A whole writer, exact to the row; JSON values only."""

    store_uuid: str
    run: str
    lanes: tuple[LanePosition, ...]
    segments: tuple[SegmentPosition, ...]
    """Every segment of the writer so far, but for those that were dropped."""
    next_segment: int
    """Segments of this writer from this id on did not exist yet."""

    def to_json(self) -> dict[str, Any]:
        """The position as JSON values."""
        described = asdict(self)
        described["lanes"] = list(described["lanes"])
        described["segments"] = [list(astuple(segment)) for segment in self.segments]
        return described

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> StorePosition:
        """The position that ``to_json`` gave."""
        return cls(
            store_uuid=described["store_uuid"],
            run=described["run"],
            lanes=tuple(_lane(lane) for lane in described["lanes"]),
            segments=tuple(SegmentPosition(*map(int, each)) for each in described["segments"]),
            next_segment=described["next_segment"],
        )


def _lane(described: Mapping[str, Any]) -> LanePosition:
    fields = dict(described)
    if fields["open"] is not None:
        fields["open"] = OpenPosition(**fields["open"])
    return LanePosition(**fields)
