"""Acts in environment lanes and writes every step; the same for collecting and for training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from storage.errors import CheckpointError
from storage.randomness import derive_seed
from training.restoration import StoredEpisode, restore_episodes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from storage import EpisodeRecord
    from storage.lane import OpenEpisode
    from storage.spaces import Leaf
    from storage.writer import Writer
    from training.lanes import Lanes, Transition
    from training.policy import Policy, PolicyStep

__all__ = ["Collector", "FinishedEpisode", "reset_seed"]


@dataclass(frozen=True, slots=True)
class FinishedEpisode:
    """An episode that was just committed."""

    record: EpisodeRecord
    """Where it lies in the store."""
    values: NDArray[np.float32] | None
    """V of every row while acting, the final observation's included, shape (length + 1,); None
    where the policy has no value function."""


def reset_seed(run_seed: int, lane: int, episode: int) -> int:
    """The seed of the reset that starts a lane's n-th episode."""
    return derive_seed(run_seed, "reset", lane, episode)


class Collector:
    """Steps lanes in turn with one policy, through one writer.

    Every episode starts with a reset whose seed is derived from (run seed, lane, episode), so that
    it can be replayed from its actions. The policy's randomness is indexed by the environment step.

    Args:
        lanes: The environments.
        writer: Open writer of the store, with as many lanes.
        policy: What acts.
        seed: The run's seed.
    """

    def __init__(self, lanes: Lanes, writer: Writer, policy: Policy, *, seed: int) -> None:
        self.steps = 0
        """Environment steps taken since the run began."""
        self.policy_update = 0
        """How many updates the policy that acts now has seen; stored with each step."""
        self._lanes = lanes
        self._writer = writer
        self._policy = policy
        self._seed = seed
        count = lanes.n_lanes
        self._episodes = [0] * count
        self._observations: list[Any] = [None] * count
        self._values: list[list[float]] = [[] for _ in range(count)]
        self._open = [False] * count
        self._cut_episodes = writer.nonfinite_episodes

    def advance(self) -> list[FinishedEpisode]:
        """Steps the next group of lanes once; the episodes that ended."""
        stride = self._lanes.stride
        first = self.steps % self._lanes.n_lanes
        group = range(first, first + stride)
        for lane in group:
            if not self._open[lane]:
                self._begin(lane)
        decisions = [
            self._policy.act(lane, self.steps + offset, self._observations[lane])
            for offset, lane in enumerate(group)
        ]
        transitions = self._lanes.step(first, [decision.action for decision in decisions])
        self.steps += stride
        finished = []
        for lane, decision, transition in zip(group, decisions, transitions, strict=True):
            episode = self._record(lane, decision, transition)
            if episode is not None:
                finished.append(episode)
        return finished

    def _begin(self, lane: int) -> None:
        episode = self._episodes[lane]
        seed = reset_seed(self._seed, lane, episode)
        observation, info = self._lanes.reset(lane, seed)
        self._writer.begin(lane, observation, seed=seed, info=info, lane_episode=episode)
        self._episodes[lane] = episode + 1
        self._observations[lane] = observation
        self._values[lane] = []
        self._open[lane] = True

    def _record(
        self, lane: int, decision: PolicyStep, transition: Transition
    ) -> FinishedEpisode | None:
        if decision.value is not None:
            self._values[lane].append(decision.value)
        record = self._writer.step(
            lane,
            action=decision.action,
            reward=transition.reward,
            observation=transition.observation,
            terminated=transition.terminated,
            truncated=transition.truncated,
            raw_action=decision.raw_action,
            behaviour=decision.behaviour,
            behaviour_kind=decision.behaviour_kind,
            policy_update=self.policy_update,
            info=transition.info,
        )
        self._observations[lane] = transition.observation
        if record is not None:
            self._open[lane] = False
            return FinishedEpisode(record, self._acting_values(lane, record.length))
        if self._writer.nonfinite_episodes != self._cut_episodes:
            self._cut_episodes = self._writer.nonfinite_episodes
            self._open[lane] = self._writer.open_episode(lane) is not None
        return None

    def _acting_values(self, lane: int, length: int) -> NDArray[np.float32] | None:
        """V of every row; that of the final observation is computed now unless it was acted on.

        An episode that the writer cut before its last step ends at an observation acted on.
        """
        values = self._values[lane]
        if not values:
            return None
        if len(values) == length:
            final = self._policy.value(self._observations[lane])
            values.append(0.0 if final is None else final)
        return np.array(values[: length + 1], np.float32)

    def state(self) -> dict[str, Any]:
        """Counters and the open episodes' values: arrays and plain numbers."""
        return {
            "steps": self.steps,
            "episodes": list(self._episodes),
            "values": [np.array(values, np.float32) for values in self._values],
        }

    def restore(self, state: Mapping[str, Any], leaves: Sequence[Leaf]) -> None:
        """Goes on from ``state``, with the writer's open episodes replayed in the lanes.

        Args:
            state: What :meth:`state` gave.
            leaves: The observation's leaves in the store's schema.
        """
        self.steps = state["steps"]
        self._episodes = list(state["episodes"])
        self._values = [[float(value) for value in values] for values in state["values"]]
        stored = {}
        for lane in range(self._lanes.n_lanes):
            episode = self._writer.open_episode(lane)
            if episode is not None:
                self._open[lane] = True
                columns = self._writer.open_rows(lane)
                stored[lane] = StoredEpisode(_known_seed(episode), episode.steps, columns)
        for lane, observation in restore_episodes(self._lanes, stored, leaves).items():
            self._observations[lane] = observation


def _known_seed(episode: OpenEpisode) -> int:
    if episode.seed is None:
        raise CheckpointError(
            f"the open episode at row {episode.start} of segment {episode.segment} has no seed, so "
            "it cannot be replayed; it was not written by a training run"
        )
    return episode.seed
