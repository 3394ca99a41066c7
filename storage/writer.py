"""The writer: n lanes, each filling a segment of its own, episode by episode."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

import numpy as np

from storage.episode_table import EpisodeRecord
from storage.errors import (
    NonFiniteError,
    SchemaMismatchError,
    SharpwaveError,
    WriterStateError,
)
from storage.lane import Lane, OpenEpisode, exact, rounded
from storage.layout import BehaviourKind, Ending, StorePaths
from storage.position import StorePosition
from storage.refusal import bad_step, no_column, no_parameters
from storage.schema import Schema
from storage.segment_writer import SegmentWriter
from storage.writer_position import capture, restore
from storage.writer_settings import WriterSettings

__all__ = ["Writer"]

_logger = logging.getLogger(__name__)
_STEP = 1
_FAMILY_KIND = {
    "gaussian": int(BehaviourKind.GAUSSIAN),
    "categorical": int(BehaviourKind.CATEGORICAL),
    "unknown": int(BehaviourKind.UNKNOWN),
}
_PARAMETRIC = (BehaviourKind.GAUSSIAN, BehaviourKind.CATEGORICAL, BehaviourKind.NOMINAL_GAUSSIAN)


class Writer:
    """Writes episodes. A context manager; made by ``Store.writer``.

    ``begin`` opens an episode on a lane, ``step`` stores a step, and the step that ends the
    episode commits it: when ``step`` returns a record, the episode is safe from ``kill -9``. One
    thread at a time.
    """

    def __init__(
        self,
        paths: StorePaths,
        schema: Schema,
        settings: WriterSettings,
        lanes: int,
        *,
        continue_from: StorePosition | None = None,
        on_close: Callable[[], object] | None = None,
    ) -> None:
        from storage.step_kernel import store_step

        self._store_step = store_step
        self._family_kind = _FAMILY_KIND[schema.behaviour_family]
        self._paths = paths
        self._schema = schema
        self._settings = settings
        self._on_close = on_close
        self._closed = False
        self._shrinking: ThreadPoolExecutor | None = None
        """Gives back the space of sealed segments: freeing blocks takes milliseconds a file."""
        self._lanes = [Lane(index, schema) for index in range(lanes)]
        self._segments: dict[int, int] = {}
        """Segments of this run, and the records in their logs when they were left."""
        self.nonfinite_episodes = 0
        """Episodes cut because of a value that is not finite."""
        if continue_from is not None:
            self._segments = dict(continue_from.segments)
            restore(paths, schema, self._lanes, continue_from)

    def begin(
        self,
        lane: int,
        observation: Any,
        *,
        seed: int | None = None,
        info: Mapping[str, Any] | None = None,
        lane_episode: int | None = None,
    ) -> None:
        """Open an episode with the observation that ``reset`` gave.

        ``seed`` is the reset's seed, 0 included; ``lane_episode`` the number of the episode
        within its lane (default: counted). Raises WriterStateError when one is open, and
        NonFiniteError, SchemaMismatchError or DiskFullError; the lane then has no open episode.
        """
        line = self._line(lane)
        if line.is_open:
            raise WriterStateError(
                f"begin on lane {lane}, whose episode {line.lane_episode} is still open after "
                f"{line.row - line.start} steps; call end(lane) or abandon(lane) first"
            )
        if seed is not None and not 0 <= seed < 2**64:
            raise SchemaMismatchError(f"seed {seed} of lane {lane}: give 0 to 2**64 - 1, or None")
        self._settle(line)
        self._provide_segment(line)
        number = line.next_episode if lane_episode is None else lane_episode
        line.begin(observation, seed, number, info)

    def step(  # noqa: C901 - one flat function: each call out of it costs 0.1 us
        self,
        lane: int,
        *,
        action: Any,
        reward: float,
        observation: Any,
        terminated: bool,
        truncated: bool,
        raw_action: Any = None,
        behaviour: Any = None,
        behaviour_kind: int = 0,
        policy_update: int = -1,
        life_lost: bool = False,
        info: Mapping[str, Any] | None = None,
    ) -> EpisodeRecord | None:
        """Store what one ``env.step(action)`` gave; returns a record when the episode ended.

        ``observation`` is the one that ``env.step`` returned (at an end, the true final one),
        ``raw_action`` the draw in policy units, ``behaviour`` the parameters of the distribution
        that it was drawn from (its kind defaults to the store's family).

        The episode ends with ``terminated``, ``truncated``, when the segment is full (ending CUT:
        reset the environment), or, with ``nonfinite="end_episode"``, before a step that is not
        finite (ending CUT; None when it had no good step, and ``open_episode`` is None then).

        Raises SchemaMismatchError, ActionOutOfBoundsError or NonFiniteError: nothing of the step
        is stored and the episode stays open. DiskFullError: the same, unless the step ended its
        episode; then ``end(lane)`` commits it when there is room again.
        """
        line = self._lanes[lane] if 0 <= lane < len(self._lanes) else self._line(lane)
        if not line.is_open:
            raise WriterStateError(f"step on lane {lane}, which has no open episode; begin one")
        row = line.row
        successor = row + 1
        if successor >= line.allocated:
            line.grow()
        present = -1
        if line.plain:
            if (
                type(observation) is not np.ndarray
                or observation.dtype is not line.observation_dtype
                or observation.shape != line.observation_shape
            ):
                observation = self._exact(observation, 0)
            if (
                type(action) is not np.ndarray
                or action.dtype is not line.action_dtype
                or action.shape != line.action_shape
            ):
                action = self._exact(action, 1)
            line.observations[successor] = observation
            line.actions[row] = action
        else:
            line.store_leaves(self._schema.action, action, row)
            line.store_leaves(self._schema.observation, observation, successor)
        raw_actions = line.raw_actions
        if raw_action is None:
            present &= ~line.plan.raw_action_bit
            if raw_actions is not None:
                raw_actions[row] = np.nan
        else:
            if raw_actions is None:
                raise no_column(self._schema, "raw_action", lane)
            if type(raw_action) is not np.ndarray or raw_action.shape != line.raw_shape:
                raw_action = rounded(raw_action, "raw_action", self._schema.raw_action_size)
            raw_actions[row] = raw_action
        behaviours = line.behaviours
        if behaviour is None:
            present &= ~line.plan.behaviour_bit
            if behaviours is not None:
                behaviours[row] = np.nan
            if behaviour_kind in _PARAMETRIC:
                raise no_parameters(self._schema, behaviour_kind, lane)
        else:
            if behaviours is None:
                raise no_column(self._schema, "behaviour", lane)
            if type(behaviour) is not np.ndarray or behaviour.shape != line.behaviour_shape:
                behaviour = rounded(behaviour, "behaviour", self._schema.behaviour_size)
            behaviours[row] = behaviour
            if not behaviour_kind:
                behaviour_kind = self._family_kind
        if type(behaviour_kind) is not int:
            behaviour_kind = int(behaviour_kind)  # numba is slow to take an IntEnum
        if line.schema.info:
            line.store_info(successor, info)
        reward = float(reward)
        bad = self._store_step(
            line.plan_address,
            row,
            present,
            reward,
            True if terminated else False,  # noqa: SIM210 - a third of bool()'s time
            True if truncated and not terminated else False,  # noqa: SIM210
            behaviour_kind,
            policy_update,
            True if life_lost else False,  # noqa: SIM210
        )
        if bad:
            return self._refuse(line, bad)
        line.kinds[row] = _STEP
        line.row = successor
        line.total += reward
        if policy_update != line.last_update:
            line.last_update = policy_update
            if row == line.start:
                line.first_update = policy_update
        if terminated:
            return self._finish(line, Ending.TERMINATED)
        if truncated:
            return self._finish(line, Ending.TRUNCATED)
        if successor == line.last_row:
            return self._finish(line, Ending.CUT)
        return None

    def end(self, lane: int) -> EpisodeRecord | None:
        """Cut the lane's open episode here, as truncated; None when there is no step to keep.

        Commits as well what a full disk kept from being committed, with its own ending.
        """
        return self._end(self._line(lane))

    def abandon(self, lane: int) -> None:
        """Forget the lane's open episode; its rows count as never written.

        A position taken while it was open can then no longer be gone back to.
        """
        line = self._line(lane)
        if line.is_open or line.pending is not None:
            line.forget()

    def open_episode(self, lane: int) -> OpenEpisode | None:
        """What is open on a lane, None when nothing is."""
        return self._line(lane).open_episode()

    def open_rows(self, lane: int) -> dict[str, np.ndarray[Any, Any]]:
        """Copies of the observation (steps + 1) and action (steps) columns of the open episode.

        From them and its seed an environment is brought back to where it was. Empty when nothing
        is open.
        """
        line = self._line(lane)
        if not line.is_open:
            return {}
        arrays = line.bound().arrays
        rows = {leaf.name: slice(line.start, line.row + 1) for leaf in self._schema.observation}
        rows |= {leaf.name: slice(line.start, line.row) for leaf in self._schema.action}
        return {name: arrays[name][where].copy() for name, where in rows.items()}

    @property
    def lanes(self) -> int:
        """Number of lanes."""
        return len(self._lanes)

    def position(self) -> StorePosition:
        """Where every lane stands, exact to the row, open episodes included."""
        for line in self._lanes:
            self._settle(line)
        settings = self._settings
        return capture(self._paths, settings.store_uuid, settings.run, self._lanes, self._segments)

    def publish(self) -> None:
        """Show all committed episodes to foreign readers now."""
        for line in self._lanes:
            if line.segment is not None:
                line.segment.publish()

    def close(self) -> None:
        """Cut and commit open episodes, publish, release all locks; may be called twice.

        Everything is released even when the disk is full; the first error is raised then.
        """
        if self._closed:
            return
        self._closed = True
        errors: list[Exception] = []
        for line in self._lanes:
            for leave in (self._end, self._leave):
                try:
                    leave(line)
                except (SharpwaveError, OSError) as error:
                    errors.append(error)
            if line.segment is not None:
                line.segment.release()
                line.unbind()
        if self._shrinking is not None:
            self._shrinking.shutdown(wait=True)
        if self._on_close is not None:
            self._on_close()
        if errors:
            raise errors[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except SharpwaveError as second:
            if error is None:
                raise
            error.add_note(f"closing the writer failed as well: {second}")

    def _line(self, lane: int) -> Lane:
        if self._closed:
            raise WriterStateError("this writer is closed; ask the store for a new one")
        if not 0 <= lane < len(self._lanes):
            raise WriterStateError(
                f"lane {lane} does not exist; this writer has lanes 0 to {len(self._lanes) - 1}"
            )
        return self._lanes[lane]

    def _settle(self, line: Lane) -> None:
        if line.pending is not None:
            self._finish(line, line.pending)

    def _provide_segment(self, line: Lane) -> None:
        if line.segment is not None and line.segment.rows >= self._settings.row_budget:
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
            )
            self._segments[segment.id] = 0
            line.bind(segment)

    def _finish(self, line: Lane, ending: Ending) -> EpisodeRecord:
        record = line.commit(ending)
        segment = line.bound()
        self._segments[segment.id] = segment.sequence
        if segment.rows >= min(self._settings.row_budget, segment.capacity - 1):
            self._seal(line)
        else:
            segment.publish(self._settings.publish_interval)
        return record

    def _seal(self, line: Lane) -> None:
        segment = line.bound()
        segment.seal()
        self._segments[segment.id] = segment.sequence
        line.unbind()
        if self._shrinking is None:
            self._shrinking = ThreadPoolExecutor(max_workers=1, thread_name_prefix="shrink")
        self._shrinking.submit(segment.shrink)

    def _end(self, line: Lane) -> EpisodeRecord | None:
        if line.pending is not None:
            return self._finish(line, line.pending)
        if not line.is_open:
            return None
        if line.row == line.start:
            line.forget()
            return None
        return self._finish(line, Ending.CUT)

    def _leave(self, line: Lane) -> None:
        if line.segment is not None:
            line.segment.close(seal=self._settings.seal)

    def _exact(self, value: Any, which: int) -> Any:
        leaf = (self._schema.observation[0], self._schema.action[0])[which]
        prefix = ("observation", "action")[which]
        if leaf.name != prefix:
            from storage.spaces import leaf_values

            value = leaf_values(value, (leaf,))[0]
        return exact(value, leaf.name, leaf.dtype, leaf.shape)

    def _refuse(self, line: Lane, bad: int) -> EpisodeRecord | None:
        """Undo a step that failed its checks, then raise or end the episode before it."""
        error = bad_step(line, bad)
        line.clear(line.row + 1, keep_observation=False)
        line.clear(line.row, keep_observation=True)
        if not isinstance(error, NonFiniteError) or self._settings.nonfinite == "refuse":
            raise error
        _logger.warning("%s The episode ends before that step.", error)
        self.nonfinite_episodes += 1
        return self._end(line)
