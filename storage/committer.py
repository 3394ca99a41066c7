"""The ends of episodes and segments: finished exactly once, whatever an interrupt cut short."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor

from storage.episode_table import EpisodeRecord
from storage.errors import SharpwaveError
from storage.lane import Lane
from storage.layout import Ending, StorePaths
from storage.position import SegmentPosition
from storage.schema import Schema
from storage.segment_writer import SegmentWriter
from storage.writer_settings import WriterSettings

__all__ = ["Committer", "attempt"]


class Committer:
    """Gives lanes their segments, commits their episodes, and seals.

    Every method may be interrupted anywhere (Ctrl-C, MemoryError) and called again: it first looks
    at what the segment's log says, and does only what is left to do.
    """

    def __init__(
        self,
        paths: StorePaths,
        schema: Schema,
        settings: WriterSettings,
        segments: Iterable[SegmentPosition],
    ) -> None:
        self._paths = paths
        self._schema = schema
        self._settings = settings
        self._left = {segment.id: segment for segment in segments}
        """Segments of this run that were sealed or begun, as far as their logs went."""
        self._next: int | None = None
        """The id after the last one that was claimed here."""
        self._shrinking: ThreadPoolExecutor | None = None
        """Settles sealed segments: giving back blocks and syncing takes milliseconds a file."""

    def segments(self, lanes: list[Lane]) -> dict[int, SegmentPosition]:
        """Every segment of the run by id, and how far its log goes."""
        bound = [line.segment for line in lanes if line.segment is not None]
        return self._left | {segment.id: _position(segment) for segment in bound}

    def retain(self, segments: Collection[int]) -> None:
        """Forget every other segment that is sealed; those that lanes write are known anyway."""
        self._left = {id_: kept for id_, kept in self._left.items() if id_ in segments}

    def provide_segment(self, line: Lane) -> None:
        """Give the lane a segment that takes another episode."""
        if line.segment is not None and self._is_full(line.segment):
            self._seal(line)
        if line.segment is None:
            settings = self._settings
            segment = SegmentWriter.create(
                self._paths,
                self._schema,
                settings.store_uuid,
                settings.run,
                line.index,
                settings.capacity,
                settings.sync,
                self._next,
            )
            self._next = segment.id + 1
            self._left[segment.id] = _position(segment)
            line.bind(segment)

    def _is_full(self, segment: SegmentWriter) -> bool:
        segment.reconcile()
        if segment.sealed or segment.released or segment.failed or segment.taken:
            return True
        return segment.rows >= min(self._settings.row_budget, segment.capacity - 1)

    def settle(self, line: Lane) -> EpisodeRecord | None:
        """Finish an end that a full disk or an interrupt left unfinished."""
        pending = line.pending
        if pending is None:
            return None
        segment = line.segment
        if segment is None or segment.released:  # an interrupted close had gone past it
            line.state = None
            return None
        segment.reconcile()
        if pending.ending is None and (segment.taken or segment.rows <= line.start):
            line.forget(pending.row)
            return None
        return self.finish(line, pending.ending or Ending.CUT, pending.row)

    def finish(self, line: Lane, ending: Ending, row: int) -> EpisodeRecord:
        """Commit the lane's episode, whose closing row is ``row``; publish or seal."""
        record = line.commit(ending, row)
        segment = line.bound()
        if self._is_full(segment):
            self._seal(line)
        else:
            segment.publish(self._settings.publish_interval)
        return record

    def _seal(self, line: Lane) -> None:
        segment = line.bound()
        if segment.released or segment.failed or segment.taken:
            segment.release()  # an interrupt may have come between its parts
        else:
            segment.seal()
        self._left[segment.id] = _position(segment)
        if segment.failed or segment.taken:
            line.unbind()
            return
        if self._shrinking is None:
            self._shrinking = ThreadPoolExecutor(max_workers=1, thread_name_prefix="shrink")
        self._shrinking.submit(segment.settle)
        line.unbind()

    def end(self, line: Lane) -> EpisodeRecord | None:
        """Cut and commit what is open on the lane; None when there is no step to keep."""
        if line.is_open and line.row == line.start:
            line.forget(line.row)
        if line.is_open:
            return self.finish(line, Ending.CUT, line.row)
        return self.settle(line)

    def abandon(self, line: Lane) -> None:
        """Forget what is open on the lane, unless its record is in the log already."""
        if line.is_open:
            line.forget(line.row)
        elif line.pending is not None:
            line.state = line.pending._replace(ending=None)
            self.settle(line)

    def leave(self, line: Lane) -> None:
        """Publish the lane's segment and let go of it; rows that could not be committed stay."""
        segment = line.segment
        if segment is not None and (segment.failed or segment.taken):
            segment.release()
        elif segment is not None and not segment.released:
            keep = 0
            if line.state is not None:
                keep = (line.pending.row if line.pending else line.row) + 1
            segment.close(seal=self._settings.seal, keep=keep)

    def sync(self, line: Lane) -> None:
        """Bring what the lane has written to the device, its open rows included."""
        if line.segment is not None:
            line.segment.sync(line.row + 1 if line.is_open else 0)

    def close(self) -> None:
        """Wait until the space of sealed segments was given back; may be called twice."""
        if self._shrinking is not None:
            self._shrinking.shutdown(wait=True)


def _position(segment: SegmentWriter) -> SegmentPosition:
    return SegmentPosition(segment.id, segment.sequence, segment.checksum)


def attempt(call: Callable[[], object], errors: list[BaseException]) -> None:
    """Call, and once more when something but an error of the store interrupted it."""
    for _ in range(2):
        try:
            call()
        except (SharpwaveError, OSError) as error:
            errors.append(error)
            return
        except BaseException as interrupt:
            errors.append(interrupt)
        else:
            return
