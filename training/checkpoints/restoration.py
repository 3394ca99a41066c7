"""Restores open episodes in environments by replaying their own actions from their reset seed."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from storage.errors import CheckpointError, EnvironmentFaultError
from storage.spaces import leaf_values, nest
from training.environments.replayability import NotReplayableWarning

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from storage.spaces import Leaf
    from training.environments.lanes import Lanes, Transition

__all__ = ["StoredEpisode", "restore_episodes"]


@dataclass(frozen=True, slots=True)
class StoredEpisode:
    """The rows of an episode that is still open."""

    seed: int
    """Seed of its reset."""
    steps: int
    """Steps taken so far."""
    columns: Mapping[str, NDArray[Any]]
    """Observation columns of ``steps + 1`` rows, action columns, and rewards."""
    number: int
    """Number of the episode in its lane."""


def restore_episodes(
    lanes: Lanes, episodes: Mapping[int, StoredEpisode], leaves: Sequence[Leaf]
) -> dict[int, Any]:
    """Brings each lane to the end of its stored episode; the present observation of each.

    Lanes that move together start one after the other, so that all of them arrive at once; what a
    lane does before its start is thrown away. Warns, naming lane, episode and step, where an
    environment shows other observations or rewards than it did: going on from there is then not
    bit-exact.

    Raises:
        CheckpointError: a lane's episode ended while being replayed.
        EnvironmentFaultError: an environment failed; lane, episode and step are named.
    """
    present: dict[int, Any] = {}
    differing: dict[int, _Difference] = {}
    for first in range(0, lanes.n_lanes, lanes.stride):
        group = range(first, first + lanes.stride)
        stored = {lane: episodes[lane] for lane in group if lane in episodes}
        if stored:
            replay = _Replay(lanes, group, stored, leaves)
            replay.run()
            present |= replay.present
            differing |= replay.differing
    _warn(differing, episodes)
    return present


@dataclass(frozen=True, slots=True)
class _Difference:
    """The first thing that an environment showed otherwise."""

    what: str
    step: int


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
        self.differing: dict[int, _Difference] = {}
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
                try:
                    observation = self._lanes.reset(lane, episode.seed)[0]
                except EnvironmentFaultError as error:
                    raise _named(error, {lane: 0}, self._episodes) from error
                self._see(lane, 0, observation)

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
        try:
            transitions = self._lanes.step(self._group.start, actions)
        except EnvironmentFaultError as error:
            raise _named(error, steps, self._episodes) from error
        for lane, shown in zip(self._group, transitions, strict=True):
            if lane in steps:
                self._compare(lane, steps[lane], shown)
            elif shown.terminated or shown.truncated:
                self._lanes.reset(lane, 0)

    def _compare(self, lane: int, step: int, shown: Transition) -> None:
        """Hold a replayed step against the stored one: none of them ended the episode."""
        if shown.terminated or shown.truncated:
            raise CheckpointError(
                f"lane {lane}, episode {self._episodes[lane].number} ended at step {step + 1} when "
                "it was replayed, which it had not done before: the environment is not a function "
                "of seed and actions, so the run cannot be resumed. Make the environment "
                "deterministic, or start a new run"
            )
        rewards = self._episodes[lane].columns.get("reward")
        if rewards is not None and rewards[step] != rewards.dtype.type(shown.reward):
            self.differing.setdefault(lane, _Difference("reward", step))
        self._see(lane, step + 1, shown.observation)

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
            self.differing.setdefault(lane, _Difference("observation", step))


def _named(
    error: EnvironmentFaultError, steps: Mapping[int, int], episodes: Mapping[int, StoredEpisode]
) -> EnvironmentFaultError:
    """The error with the places where it may have come from."""
    lanes = steps if error.lane is None else [error.lane]
    places = [
        f"lane {lane}, episode {episodes[lane].number}, step {steps[lane]}"
        if lane in steps
        else f"lane {lane}, which idled"
        for lane in lanes
    ]
    named = EnvironmentFaultError(
        f"{'; '.join(places)}, while open episodes were replayed: {error}. Correct the "
        "environment and resume again"
    )
    named.lane = error.lane
    return named


def _warn(differing: Mapping[int, _Difference], episodes: Mapping[int, StoredEpisode]) -> None:
    if differing:
        places = "; ".join(
            f"lane {lane} from step {each.step} of episode {episodes[lane].number}, {each.what}"
            for lane, each in differing.items()
        )
        warnings.warn(
            "the environment is not a function of seed and actions: it does not show what it had "
            f"shown before ({places}). The resumed run goes on, but it is not bit-exact",
            NotReplayableWarning,
            stacklevel=3,
        )
