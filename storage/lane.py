"""One environment lane of a writer: the open episode, and fast ways into its segment's columns."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from storage.episode_table import EpisodeRecord
from storage.errors import NonFiniteError, SchemaMismatchError
from storage.frame_stack import check_first_stack
from storage.layout import BehaviourKind, Ending, RowKind
from storage.log_record import LogRecord
from storage.open_episode import OpenEpisodeNote, write_note
from storage.schema import Schema
from storage.segment_writer import SegmentWriter
from storage.spaces import Leaf, leaf_values
from storage.step_plan import StepPlan
from storage.step_values import exact

__all__ = ["OPEN", "Lane", "OpenEpisode", "Pending"]

OPEN: Final = "open"


class Pending(NamedTuple):
    """An episode that takes no more steps and whose end is not finished yet."""

    ending: Ending | None
    """None when its rows are to be forgotten."""
    row: int
    """Its closing row."""


@dataclass(frozen=True, slots=True)
class OpenEpisode:
    """An episode that has begun and not ended."""

    segment: int
    start: int
    """Row of its first step."""
    steps: int
    """Steps stored so far."""
    seed: int | None
    lane_episode: int


class Lane:
    """State of one lane. Attributes are read directly by ``Writer.step``, which must be fast.

    An interrupt may land between any two statements. So ``state`` alone says what the lane is
    doing, it changes after everything that it vouches for, and sums over the episode are taken
    from its rows.
    """

    def __init__(self, index: int, schema: Schema) -> None:
        self.index = index
        self.schema = schema
        self.segment: SegmentWriter | None = None
        self.state: Literal["open"] | Pending | None = None
        """OPEN takes steps; None has no episode."""
        self.start = self.row = self.allocated = self.last_row = 0
        self.seed: int | None = None
        self.lane_episode = 0
        self.begin_time = 0
        self.next_free = 0
        """Number of the next episode, while none is open."""
        self._column_of = {column.name: column for column in schema.columns}

    @property
    def is_open(self) -> bool:
        """Whether an episode takes steps."""
        return self.state is OPEN

    @property
    def pending(self) -> Pending | None:
        """The end that could not be finished yet."""
        return self.state if isinstance(self.state, Pending) else None

    @property
    def next_episode(self) -> int:
        """Number of the lane's next episode."""
        return self.next_free if self.state is None else self.lane_episode + 1

    def bind(self, segment: SegmentWriter) -> None:
        """Take up a segment: keep its arrays and the kernel's plan at hand."""
        arrays = segment.arrays
        self.plan = StepPlan(self.schema, arrays)
        self.plan_address = self.plan.address
        self.allocated = segment.allocated
        self.last_row = segment.capacity - 1
        self.keeps_info = bool(self.schema.info)
        self.kinds = memoryview(arrays["kind"])  # type: ignore[arg-type]
        self.segment = segment

    def unbind(self) -> None:
        """Let go of the segment and of every map of it."""
        self.segment = None
        for name in ("plan", "kinds"):
            self.__dict__.pop(name, None)

    def bound(self) -> SegmentWriter:
        """The segment in use."""
        if self.segment is None:
            raise RuntimeError(f"lane {self.index} has no segment")  # unreachable from outside
        return self.segment

    def grow(self) -> None:
        """Allocate room for the row after the current step's; raises DiskFullError."""
        segment = self.bound()
        segment.ensure(self.row + 2)
        self.allocated = segment.allocated

    def begin(self, observation: Any, seed: int | None, number: int, info: Any) -> None:
        """Store the first observation in the row after the committed ones."""
        segment = self.bound()
        row = segment.rows
        segment.ensure(row + 2)
        self.allocated = segment.allocated
        try:
            values = self._first(observation, number)
        except SchemaMismatchError as error:
            raise SchemaMismatchError(
                f"first observation of lane {self.index}, episode {number}: {error}"
            ) from None
        note = OpenEpisodeNote(row, seed, number, time.time_ns())
        write_note(segment.paths.open_episode(segment.id), note)
        segment.arrays["kind"][row] = RowKind.NEVER_WRITTEN
        self._store(self.schema.observation, self._newest(values), row)
        self.store_info(row, info)
        self.resume(note, 0)

    def resume(self, note: OpenEpisodeNote, steps: int) -> None:
        """Go on with an episode whose rows are there."""
        self.start, self.row = note.start, note.start + steps
        self.seed, self.lane_episode, self.begin_time = (
            note.seed,
            note.lane_episode,
            note.begin_time,
        )
        self.state = OPEN

    def _first(self, observation: Any, number: int) -> list[Any]:
        """An episode's first observation in the dtypes of its columns, after all checks."""
        leaves, schema = self.schema.observation, self.schema
        values = _exact_parts(leaves, observation)
        for leaf, value in zip(leaves, values, strict=True):
            if schema.frame_stack is not None:
                check_first_stack(leaf.name, value, schema.first_stack_padding)
            if not np.isfinite(value).all():
                raise NonFiniteError(
                    f"{leaf.name}: the first observation of lane {self.index}, episode {number} "
                    f"is not finite: {value!r}. The episode was not begun; reset again."
                )
        return values

    @property
    def place(self) -> str:
        """Where the step that is being stored belongs."""
        steps = self.row - self.start
        return f"lane {self.index}, episode {self.lane_episode}, step {steps}"

    def store_observation(self, value: Any, row: int) -> None:
        """Store the parts of what the environment showed in one row; of stacks, the last frame."""
        leaves = self.schema.observation
        self._store(leaves, self._newest(_exact_parts(leaves, value)), row)

    def store_action(self, value: Any, row: int) -> None:
        """Store an action's parts in one row."""
        leaves = self.schema.action
        self._store(leaves, _exact_parts(leaves, value), row)

    def _newest(self, values: list[Any]) -> list[Any]:
        """What rows hold of an observation's parts."""
        return values if self.schema.frame_stack is None else [stack[-1] for stack in values]

    def _store(self, leaves: tuple[Leaf, ...], values: list[Any], row: int) -> None:
        arrays = self.bound().arrays
        for leaf, value in zip(leaves, values, strict=True):
            arrays[leaf.name][row] = value

    def store_info(self, row: int, info: Mapping[str, Any] | None) -> None:
        """Store the kept info keys that came with the observation of ``row``."""
        arrays = self.bound().arrays
        for item in self.schema.info:
            value = None if info is None else info.get(item.key)
            column, mask = item.columns
            if value is not None:
                value = exact(value, column.name, column.dtype, column.shape)
            arrays[column.name][row] = 0 if value is None else value
            arrays[mask.name][row] = value is not None

    def clear(self, row: int, *, keep_observation: bool) -> None:
        """Reset a row's columns to zero; with ``keep_observation``, but for what came with it."""
        kept: set[str] = set()
        if keep_observation:
            kept = {leaf.name for leaf in self.schema.observation}
            kept |= {column.name for item in self.schema.info for column in item.columns}
        for name, array in self.bound().arrays.items():
            if name not in kept:
                array[row] = 0

    def close_row(self, row: int) -> None:
        """Make ``row``, which holds the final observation, a closing row."""
        arrays = self.bound().arrays
        self.clear(row, keep_observation=True)
        if "behaviour" in arrays:
            arrays["behaviour"][row] = np.nan
        arrays["behaviour_kind"][row] = BehaviourKind.UNKNOWN
        arrays["policy_update"][row] = -1
        arrays["kind"][row] = RowKind.CLOSING

    def commit(self, ending: Ending, row: int) -> EpisodeRecord:
        """Close the episode whose closing row is ``row``, and commit it, at most once.

        Raises DiskFullError when the log cannot take the record: the episode then stays pending,
        and calling again commits it.
        """
        segment = self.bound()
        self.state = Pending(ending, row)
        segment.reconcile()
        segment.check_held(self.start, row + 1)
        if segment.rows <= self.start:  # else an interrupted call had come as far as the log
            if ending in (Ending.CUT, Ending.SALVAGED):
                note = OpenEpisodeNote(
                    self.start, self.seed, self.lane_episode, self.begin_time, ending
                )
                with suppress(OSError):  # of use to a salvage alone, should this be killed
                    write_note(segment.paths.open_episode(segment.id), note)
                segment.arrays["truncated"][row - 1] = True
            self.close_row(row)
            segment.commit(self._record(segment, ending, row))
        record = segment.last_episode
        self._leave()
        return record

    def _record(self, segment: SegmentWriter, ending: Ending, row: int) -> LogRecord:
        arrays = segment.arrays
        return LogRecord(
            ordinal=segment.episodes,
            sequence=segment.sequence,
            start=self.start,
            length=row - self.start,
            ending=ending,
            episode_return=float(np.cumsum(arrays["reward"][self.start : row])[-1]),
            seed=self.seed,
            lane_episode=self.lane_episode,
            first_policy_update=int(arrays["policy_update"][self.start]),
            last_policy_update=int(arrays["policy_update"][row - 1]),
            begin_time=self.begin_time,
            end_time=time.time_ns(),
            column_crc=(),
        )

    def forget(self, row: int) -> None:
        """Drop the rows of the open episode up to ``row``: they become never written ones."""
        self.state = Pending(None, row)
        segment = self.segment
        if segment is not None and not (segment.released or segment.taken):
            segment.arrays["kind"][self.start : row + 1] = RowKind.NEVER_WRITTEN
        self._leave()

    def _leave(self) -> None:
        self.next_free = self.lane_episode + 1
        self.state = None

    def open_episode(self) -> OpenEpisode | None:
        """The open episode, None when there is none."""
        if not self.is_open:
            return None
        segment = self.bound().id
        steps = self.row - self.start
        return OpenEpisode(segment, self.start, steps, self.seed, self.lane_episode)


def _exact_parts(leaves: tuple[Leaf, ...], value: Any) -> list[Any]:
    """A nested value's parts in their leaves' dtypes and shapes; see ``exact``."""
    return [
        exact(part, leaf.name, leaf.dtype, leaf.shape)
        for leaf, part in zip(leaves, leaf_values(value, leaves), strict=True)
    ]
