"""One episode in aligned arrays: T + 1 observations against T of everything else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from storage.environment_spec import EnvironmentSpec
from storage.episode_table import EpisodeRecord
from storage.schema import Schema
from storage.segment import MappedSegment
from storage.spaces import nest

__all__ = ["Episode", "Transition", "read_episode"]


class Transition(NamedTuple):
    """One step with both its observations; nested spaces give dicts and tuples."""

    observation: Any
    action: Any
    reward: float
    next_observation: Any
    terminated: bool
    truncated: bool


@dataclass(frozen=True, repr=False)
class Episode:
    """Arrays over the store's own bytes, read-only; stacks of frames are put together from them.

    ``columns`` holds every column by its name in the store, closing row included, such as
    ``columns["info.lives"]``; what most readers want of them are attributes, of T rows each.
    """

    record: EpisodeRecord
    schema: Schema
    spec: EnvironmentSpec
    action: Any
    """(T, …): what the environment received."""
    reward: np.ndarray[Any, Any]
    terminated: np.ndarray[Any, Any]
    truncated: np.ndarray[Any, Any]
    columns: dict[str, np.ndarray[Any, Any]]
    """Every column, (T + 1, …), closing row included; of stacked observations, single frames."""

    @cached_property
    def observation(self) -> Any:
        """(T + 1, …): row t is what the agent saw at step t, row T the final observation.

        Stacks (T + 1, k, …) are made when first asked for, and take one copy of their frames.
        """
        leaves = self.schema.observation
        seen = {leaf.name: self.schema.shown(self.columns[leaf.name]) for leaf in leaves}
        return nest(self.spec.observation_space, "observation", seen)

    def __len__(self) -> int:
        return self.record.length

    def __repr__(self) -> str:
        record = self.record
        return (
            f"<Episode {record.ordinal} of segment {record.segment}: {record.length:,} steps, "
            f"return {record.episode_return:.6g}, {record.ending.name.lower()}>"
        )

    @property
    def raw_action(self) -> np.ndarray[Any, Any]:
        """float32 (T, dA): the draw in policy units; AttributeError where the store has none."""
        return self._steps("raw_action")

    @property
    def behaviour(self) -> np.ndarray[Any, Any]:
        """float32 (T, K): what each action was drawn from; AttributeError where there is none."""
        return self._steps("behaviour")

    @property
    def behaviour_kind(self) -> np.ndarray[Any, Any]:
        """uint8 (T,): see ``storage.BehaviourKind``."""
        return self._steps("behaviour_kind")

    @property
    def policy_update(self) -> np.ndarray[Any, Any]:
        """int64 (T,): updates that the policy had seen; -1 where nobody said."""
        return self._steps("policy_update")

    def _steps(self, name: str) -> np.ndarray[Any, Any]:
        if name not in self.columns:
            raise AttributeError(
                f"this store keeps no column {name!r}; it has {', '.join(self.columns)}"
            )
        return self.columns[name][: len(self)]

    def transitions(self) -> Iterator[Transition]:
        """The T steps, each with its true next observation."""
        for t in range(len(self)):
            yield Transition(
                _row(self.observation, t),
                _row(self.action, t),
                float(self.reward[t]),
                _row(self.observation, t + 1),
                bool(self.terminated[t]),
                bool(self.truncated[t]),
            )


def _row(value: Any, row: int) -> Any:
    if isinstance(value, dict):
        return {key: _row(item, row) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(_row(item, row) for item in value)
    return value[row]


def read_episode(
    record: EpisodeRecord, segment: MappedSegment, schema: Schema, spec: EnvironmentSpec
) -> Episode:
    """The episode, of arrays that are not copied."""
    end = record.start + record.length
    columns = {
        column.name: segment.array(column.name)[record.start : end + 1] for column in schema.columns
    }
    steps = {name: array[: record.length] for name, array in columns.items()}
    return Episode(
        record=record,
        schema=schema,
        spec=spec,
        action=nest(spec.action_space, "action", steps),
        reward=steps["reward"],
        terminated=steps["terminated"],
        truncated=steps["truncated"],
        columns=columns,
    )
