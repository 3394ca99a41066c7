"""Restores open episodes in environments by replaying their own actions from their reset seed."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from storage.errors import CheckpointError
from storage.spaces import leaf_values, nest
from training.environment import NotReplayableWarning

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from storage.spaces import Leaf
    from training.lanes import Lanes

__all__ = ["StoredEpisode", "restore_episodes"]


@dataclass(frozen=True, slots=True)
class StoredEpisode:
    """The rows of an episode that is still open."""

    seed: int
    """Seed of its reset."""
    steps: int
    """Steps taken so far."""
    columns: Mapping[str, NDArray[Any]]
    """Observation columns of ``steps + 1`` rows, and action columns."""


def restore_episodes(
    lanes: Lanes, episodes: Mapping[int, StoredEpisode], leaves: Sequence[Leaf]
) -> dict[int, Any]:
    """Brings each lane to the end of its stored episode; the present observation of each.

    Lanes that move together start one after the other, so that all of them arrive at once; what a
    lane does before its start is thrown away. Warns, naming lane and step, where an environment
    shows other observations than it did: going on from there is then not bit-exact.

    Raises:
        CheckpointError: a lane's episode ended while being replayed.
    """
    present: dict[int, Any] = {}
    for first in range(0, lanes.n_lanes, lanes.stride):
        group = {
            lane: episodes[lane] for lane in range(first, first + lanes.stride) if lane in episodes
        }
        if group:
            present |= _replay_group(lanes, first, group, leaves)
    return present


def _replay_group(
    lanes: Lanes, first: int, group: Mapping[int, StoredEpisode], leaves: Sequence[Leaf]
) -> dict[int, Any]:
    longest = max(episode.steps for episode in group.values())
    filler = _action(lanes, next(iter(group.values())), 0) if longest else None
    present: dict[int, Any] = {}
    differing: dict[int, int] = {}

    def see(lane: int, step: int, observation: Any) -> None:
        present[lane] = observation
        if lane not in differing and not _equal(group[lane], step, observation, leaves):
            differing[lane] = step

    waiting = [lane for lane in range(first, first + lanes.stride) if lane not in group]
    for tick in range(longest + 1):
        for lane, episode in group.items():
            if tick == longest - episode.steps:
                see(lane, 0, lanes.reset(lane, episode.seed)[0])
        if tick == longest:
            break
        began = {lane: tick - (longest - each.steps) for lane, each in group.items()}
        if tick == 0:
            idle = waiting + [lane for lane in group if began[lane] < 0]
            for lane in idle:
                lanes.reset(lane, 0)
        actions = [
            _action(lanes, group[lane], began[lane]) if began.get(lane, -1) >= 0 else filler
            for lane in range(first, first + lanes.stride)
        ]
        for lane, shown in enumerate(lanes.step(first, actions), start=first):
            if began.get(lane, -1) >= 0:
                see(lane, began[lane] + 1, shown.observation)
                _check_going_on(lane, began[lane], shown.terminated or shown.truncated)
            elif shown.terminated or shown.truncated:
                lanes.reset(lane, 0)
    _warn(differing)
    return present


def _action(lanes: Lanes, episode: StoredEpisode, step: int) -> Any:
    row = {name: array[step] for name, array in episode.columns.items()}
    return nest(lanes.action_space, "action", row)


def _equal(episode: StoredEpisode, step: int, observation: Any, leaves: Sequence[Leaf]) -> bool:
    shown = leaf_values(observation, leaves)
    return all(
        np.array_equal(value, episode.columns[leaf.name][step])
        for leaf, value in zip(leaves, shown, strict=True)
    )


def _check_going_on(lane: int, step: int, ended: bool) -> None:
    if ended:
        raise CheckpointError(
            f"lane {lane} ended at step {step + 1} when its open episode was replayed, which it "
            "had not done before: the environment is not a function of seed and actions, so the "
            "run cannot be resumed. Make the environment deterministic, or start a new run"
        )


def _warn(differing: Mapping[int, int]) -> None:
    if differing:
        places = ", ".join(f"lane {lane} from step {step}" for lane, step in differing.items())
        warnings.warn(
            "the environment shows other observations for the same seed and actions "
            f"({places}): the resumed run goes on, but it is not bit-exact",
            NotReplayableWarning,
            stacklevel=3,
        )
