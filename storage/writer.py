"""The writer: n lanes, each filling a segment of its own, episode by episode."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Self

import numpy as np

from storage.committer import Committer, attempt
from storage.episode_table import EpisodeRecord
from storage.errors import (
    NonFiniteError,
    SchemaMismatchError,
    SharpwaveError,
    WriterStateError,
)
from storage.forking import disown_in_children
from storage.lane import OPEN, Lane, OpenEpisode
from storage.layout import BehaviourKind, Ending, StorePaths
from storage.lock import next_segment
from storage.position import StorePosition
from storage.refusal import bad_step, beyond_int64, misfit, no_column, no_parameters
from storage.schema import Schema
from storage.step_kernel import MISFIT, store_step
from storage.step_values import flag, integer, number, rounded
from storage.syncing import sync_store
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


def _load_arrow() -> None:
    """Import what commits need: an interrupt within an import would spoil it for good."""
    import pyarrow as pa

    pa.array(np.zeros(1))  # imports pandas where it is installed


class Writer:
    """Writes episodes. A context manager; made by ``Store.writer``.

    ``begin`` opens an episode on a lane, ``step`` stores a step, and the step that ends the
    episode commits it: when ``step`` returns a record, the episode is safe from ``kill -9`` (and,
    by ``durability="fsync"``, from a power cut; see ``Store.writer``). An
    interrupt (Ctrl-C) may land anywhere: the call it hit counts as not made, or as made; ``end``,
    ``abandon`` or ``close`` then go on from what the log says. One thread at a time.
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
        _load_arrow()
        self._family_kind = _FAMILY_KIND[schema.behaviour_family]
        self._paths = paths
        self._schema = schema
        self._settings = settings
        self._on_close = on_close
        self._closing = self._closed = False
        self._forked = False
        disown_in_children(self)
        self._lanes = [Lane(index, schema) for index in range(lanes)]
        self.nonfinite_episodes = 0
        """Episodes cut because of a value that is not finite."""
        segments = () if continue_from is None else continue_from.segments
        self._committer = Committer(paths, schema, settings, segments)
        self._first_segment = next_segment(paths)
        if settings.sync is not None:
            sync_store(paths)
        if continue_from is not None:
            self._first_segment = continue_from.next_segment
            restore(paths, schema, self._lanes, continue_from, settings.sync)

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
        self._committer.settle(line)
        self._committer.provide_segment(line)
        number = line.next_episode if lane_episode is None else lane_episode
        line.begin(observation, seed, number, info)

    def step(  # noqa: C901 - one flat function: each call out of it costs 0.1 us
        self,
        lane: int,
        *,
        action: Any,
        reward: float,
        observation: Any,
        terminated: bool | np.bool_,
        truncated: bool | np.bool_,
        raw_action: Any = None,
        behaviour: Any = None,
        behaviour_kind: int = 0,
        policy_update: int = -1,
        life_lost: bool | np.bool_ = False,
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
        if line.state is not OPEN:
            self._line(lane)
            raise WriterStateError(f"step on lane {lane}, which has no open episode; begin one")
        row = line.row
        successor = row + 1
        if successor >= line.allocated:
            line.grow()
        try:
            if type(reward) is not float:
                reward = number(reward, "reward")
            if terminated is not False and terminated is not True:
                terminated = flag(terminated, "terminated")
            if truncated is not False and truncated is not True:
                truncated = flag(truncated, "truncated")
            if type(behaviour_kind) is not int:
                behaviour_kind = integer(behaviour_kind, "behaviour_kind")
            if type(policy_update) is not int:
                policy_update = integer(policy_update, "policy_update")
            if life_lost is not False:
                life_lost = flag(life_lost, "life_lost")
        except SchemaMismatchError as error:
            raise misfit(line, error) from None
        if behaviour is not None and not behaviour_kind:
            behaviour_kind = self._family_kind
        if line.keeps_info:
            self._store_info(line, info)
        try:
            bad = store_step(
                line.plan_address,
                row,
                id(observation),
                id(action),
                id(raw_action),
                id(behaviour),
                reward,
                terminated,
                truncated and not terminated,
                behaviour_kind,
                policy_update,
                life_lost,
            )
        except OverflowError:
            raise beyond_int64(line, behaviour_kind, policy_update) from None
        if bad:
            if bad >= MISFIT:
                values = (observation, action, raw_action, behaviour)
                truncates = truncated and not terminated
                kept = (reward, terminated, truncates, behaviour_kind, policy_update, life_lost)
                bad = self._store_apart(line, bad, values, kept)
            if bad:
                return self._refuse(line, bad)
        line.kinds[row] = _STEP
        if terminated:
            return self._committer.finish(line, Ending.TERMINATED, successor)
        if truncated:
            return self._committer.finish(line, Ending.TRUNCATED, successor)
        if successor == line.last_row:
            return self._committer.finish(line, Ending.CUT, successor)
        line.row = successor
        return None

    def end(self, lane: int) -> EpisodeRecord | None:
        """Cut the lane's open episode here, as truncated; None when there is no step to keep.

        Commits as well what a full disk kept from being committed, with its own ending.
        """
        return self._committer.end(self._line(lane))

    def abandon(self, lane: int) -> None:
        """Forget the lane's open episode; its rows count as never written.

        A position taken while it was open can then no longer be gone back to.
        """
        self._committer.abandon(self._line(lane))

    def open_episode(self, lane: int) -> OpenEpisode | None:
        """What is open on a lane, None when nothing is."""
        return self._line(lane).open_episode()

    def open_rows(self, lane: int) -> dict[str, np.ndarray[Any, Any]]:
        """Copies of the open episode's observations (steps + 1), actions and rewards, by column.

        Stacks of frames come as the environment showed them. From all this and its seed an
        environment is brought back to where it was. Empty when nothing is open.
        """
        line = self._line(lane)
        if not line.is_open:
            return {}
        arrays, schema = line.bound().arrays, self._schema
        seen = {
            leaf.name: schema.shown(arrays[leaf.name][line.start : line.row + 1].copy())
            for leaf in schema.observation
        }
        names = ("reward", *(leaf.name for leaf in schema.action))
        return seen | {name: arrays[name][line.start : line.row].copy() for name in names}

    @property
    def lanes(self) -> int:
        """Number of lanes."""
        return len(self._lanes)

    def position(self) -> StorePosition:
        """Where every lane stands, exact to the row, open episodes included; synced before."""
        for line in self._lanes:
            self._committer.settle(line)
        self.sync()
        settings = self._settings
        segments = self._committer.segments(self._lanes)
        return capture(
            settings.store_uuid, settings.run, self._lanes, segments, self._first_segment
        )

    def sync(self) -> None:
        """With ``durability="fsync"``, return when the device has all rows and records.

        Raises DeviceError where it does not take them.
        """
        for line in self._lanes:
            self._committer.sync(line)

    def retain(self, segments: Collection[int]) -> None:
        """Let later positions name these segments and those being written, and no others.

        For sealed segments that may be dropped: going back to such a position leaves them alone.
        """
        self._committer.retain(segments)

    def publish(self) -> None:
        """Show all committed episodes to foreign readers now."""
        for line in self._lanes:
            if line.segment is not None:
                line.segment.publish()

    def close(self) -> None:
        """Cut and commit open episodes, publish, release all locks; may be called twice.

        Everything is released even when the disk is full or an interrupt comes meanwhile; the
        interrupt, or else the first error, is raised then.
        """
        if self._closed:
            return
        self._closing = True
        errors: list[BaseException] = []
        for line in self._lanes:
            for leave in (self._committer.end, self._committer.leave):
                attempt(partial(leave, line), errors)
            if line.segment is not None:
                line.segment.release()
                line.unbind()
            line.state = None
        attempt(self._committer.close, errors)
        if self.nonfinite_episodes > 1:
            count = f"{self.nonfinite_episodes:,}"
            _logger.warning("%s episodes ended before a step that was not finite", count)
        if self._on_close is not None:
            attempt(self._on_close, errors)
        self._closed = True
        errors.sort(key=lambda error: isinstance(error, Exception))
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
        finally:
            if not self._closed:  # an interrupt came where nobody could defer it
                self.close()

    def _line(self, lane: int) -> Lane:
        if self._forked:
            raise WriterStateError(
                "this writer is that of the process that forked this one; ask the store for another"
            )
        if self._closing:
            raise WriterStateError("this writer is closed; ask the store for a new one")
        if not 0 <= lane < len(self._lanes):
            raise WriterStateError(
                f"lane {lane} does not exist; this writer has lanes 0 to {len(self._lanes) - 1}"
            )
        return self._lanes[lane]

    def disown(self) -> None:
        """Let go of everything without a word to the store: in a child, which owns nothing."""
        self._forked = self._closing = self._closed = True
        for line in self._lanes:
            line.state = None
            if line.segment is not None:
                line.segment.release()
                line.unbind()

    def _store_info(self, line: Lane, info: Mapping[str, Any] | None) -> None:
        try:
            line.store_info(line.row + 1, info)
        except (TypeError, ValueError) as error:
            raise misfit(line, error) from error

    def _store_apart(
        self, line: Lane, misfits: int, values: tuple[Any, ...], scalars: tuple[Any, ...]
    ) -> int:
        """Store through NumPy what the kernel did not take as it was, then all the rest."""
        observation, action, raw_action, behaviour = values
        try:
            if misfits & 1:
                line.store_observation(observation, line.row + 1)
            if misfits & 2:
                line.store_action(action, line.row)
            if misfits & 4:
                self._store_rounded(line, "raw_action", raw_action)
            if misfits & 8:
                if behaviour is None:
                    raise no_parameters(self._schema, scalars[3], line.index)
                if scalars[3] == BehaviourKind.UNIFORM:
                    raise SchemaMismatchError("behaviour: uniform draws have no parameters")
                self._store_rounded(line, "behaviour", behaviour)
        except (TypeError, ValueError) as error:
            raise misfit(line, error) from error
        ids = [0 if misfits >> i & 1 else id(value) for i, value in enumerate(values)]
        return int(store_step(line.plan_address, line.row, *ids, *scalars))

    def _store_rounded(self, line: Lane, name: str, value: Any) -> None:
        column = line.bound().arrays.get(name)
        if column is None:
            raise no_column(self._schema, name, line.index)
        column[line.row] = rounded(value, name, column.shape[1])

    def _refuse(self, line: Lane, bad: int) -> EpisodeRecord | None:
        """Undo a step that failed its checks, then raise or end the episode before it."""
        ends = self._settings.nonfinite == "end_episode"
        error = bad_step(line, bad, ends=ends)
        line.clear(line.row + 1, keep_observation=False)
        line.clear(line.row, keep_observation=True)
        if not ends or not isinstance(error, NonFiniteError):
            raise error
        if not self.nonfinite_episodes:
            _logger.warning("%s. More of them are counted, and told at the end.", error)
        self.nonfinite_episodes += 1
        return self._committer.end(line)
