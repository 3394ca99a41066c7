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
    differing: dict[int, int] = {}
    for first in range(0, lanes.n_lanes, lanes.stride):
        group = range(first, first + lanes.stride)
        stored = {lane: episodes[lane] for lane in group if lane in episodes}
        if stored:
            replay = _Replay(lanes, group, stored, leaves)
            replay.run()
            present |= replay.present
            differing |= replay.differing
    _warn(differing)
    return present


class _Replay:
    """A group of lanes on its way to the ends of its stored episodes.

    A lane that has fewer steps to replay than others starts later; until then, as a lane without
    an episode, it idles with anybody's action and is reset when that ends an episode.
    """

    def __init__(
        self,
        lanes: Lanes,
        group: range,
        episodes: Mapping[int, StoredEpisode],
        leaves: Sequence[Leaf],
    ) -> None:
        self.present: dict[int, Any] = {}
        self.differing: dict[int, int] = {}
        self._lanes = lanes
        self._group = group
        self._episodes = episodes
        self._leaves = leaves
        self._longest = max(episode.steps for episode in episodes.values())

    def run(self) -> None:
        """Replays all episodes, so that they arrive together."""
        if self._longest:
            for lane in self._group:
                self._lanes.reset(lane, 0)
        for tick in range(self._longest):
            self._start(tick)
            self._advance(tick)
        self._start(self._longest)

    def _start(self, tick: int) -> None:
        for lane, episode in self._episodes.items():
            if self._longest - episode.steps == tick:
                self._see(lane, 0, self._lanes.reset(lane, episode.seed)[0])

    def _advance(self, tick: int) -> None:
        steps = {
            lane: tick - self._longest + episode.steps
            for lane, episode in self._episodes.items()
            if tick >= self._longest - episode.steps
        }
        filler = self._action(*next(iter(steps.items())))
        actions = [
            self._action(lane, steps[lane]) if lane in steps else filler for lane in self._group
        ]
        for lane, shown in zip(
            self._group, self._lanes.step(self._group.start, actions), strict=True
        ):
            ended = shown.terminated or shown.truncated
            if lane in steps:
                self._see(lane, steps[lane] + 1, shown.observation)
                _check_going_on(lane, steps[lane], ended)
            elif ended:
                self._lanes.reset(lane, 0)

    def _action(self, lane: int, step: int) -> Any:
        columns = self._episodes[lane].columns
        row = {name: array[step] for name, array in columns.items() if name.startswith("action")}
        return nest(self._lanes.action_space, "action", row)

    def _see(self, lane: int, step: int, observation: Any) -> None:
        self.present[lane] = observation
        columns = self._episodes[lane].columns
        shown = leaf_values(observation, self._leaves)
        same = all(
            np.array_equal(value, columns[leaf.name][step])
            for leaf, value in zip(self._leaves, shown, strict=True)
        )
        if not same:
            self.differing.setdefault(lane, step)


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
