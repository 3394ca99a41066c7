"""Acts in environment lanes and writes every step; the same for collecting and for training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from storage.errors import CheckpointError, EnvironmentFaultError, NonFiniteError
from storage.randomness import derive_seed
from training.checkpoints.restoration import StoredEpisode, restore_episodes
from training.environments.lives import Lives

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from storage import EpisodeRecord
    from storage.lane import OpenEpisode
    from storage.spaces import Leaf
    from storage.writer import Writer
    from storage.writer_settings import Nonfinite
    from training.acting.policy import Policy, PolicyStep
    from training.environments.lanes import Lanes, Transition

__all__ = ["ATTEMPTS", "Collector", "FinishedEpisode", "reset_seed"]

ATTEMPTS = 20
"""Episodes of one lane in a row without a finite step, after which a collector gives up."""


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
        nonfinite: As the writer has it. With ``end_episode``, a first observation that is not
            finite is followed by a reset with the next episode's seed, and a lane without a finite
            step in 20 episodes is given up.
        life_loss: Whether the store marks the steps that lost a life; see
            `training.environments.lives`.
    """

    def __init__(
        self,
        lanes: Lanes,
        writer: Writer,
        policy: Policy,
        *,
        seed: int,
        nonfinite: Nonfinite = "refuse",
        life_loss: bool = False,
    ) -> None:
        self.steps = 0
        """Environment steps taken since the run began."""
        self.policy_update = 0
        """How many updates the policy that acts now has seen; stored with each step."""
        self._lanes = lanes
        self._writer = writer
        self._policy = policy
        self._seed = seed
        self._nonfinite = nonfinite
        self._stride = lanes.stride
        self._n_lanes = count = lanes.n_lanes
        self._episodes = [0] * count
        self._observations: list[Any] = [None] * count
        self._values: list[list[float]] = [[] for _ in range(count)]
        self._open = [False] * count
        self._stepless = [0] * count
        self._lives = Lives(count) if life_loss else None
        self._cut_episodes = writer.nonfinite_episodes

    def advance(self) -> list[FinishedEpisode]:
        """Steps the next group of lanes once; the episodes that ended.

        Raises:
            EnvironmentFaultError: an environment failed; lane, episode and step are named.
            NonFiniteError: NaN or infinity where it is refused, or in 20 episodes in a row.
        """
        first = self.steps % self._n_lanes
        decisions = []
        for lane in range(first, first + self._stride):
            if not self._open[lane]:
                self._begin(lane)
            step = self.steps + lane - first
            decisions.append(self._policy.act(lane, step, self._observations[lane]))
        try:
            transitions = self._lanes.step(first, [decision.action for decision in decisions])
        except EnvironmentFaultError as error:
            raise EnvironmentFaultError(f"{self._place(error.lane)}: {error}") from error
        self.steps += self._stride
        finished: list[FinishedEpisode] = []
        for offset, decision in enumerate(decisions):
            self._record(first + offset, decision, transitions[offset], finished)
        return finished

    def _begin(self, lane: int) -> None:
        while not self._open[lane]:
            episode = self._episodes[lane]
            self._episodes[lane] = episode + 1
            seed = reset_seed(self._seed, lane, episode)
            try:
                observation, info = self._lanes.reset(lane, seed)
                if self._lives is not None:
                    self._lives.begin(lane, info)
            except EnvironmentFaultError as error:
                raise EnvironmentFaultError(f"lane {lane}, episode {episode}: {error}") from error
            try:
                self._writer.begin(lane, observation, seed=seed, info=info, lane_episode=episode)
            except NonFiniteError:
                if self._nonfinite == "refuse":
                    raise
                self._count_stepless(lane)
                continue
            self._observations[lane] = observation
            self._values[lane] = []
            self._open[lane] = True
            self._policy.begin(lane, 0)

    def _count_stepless(self, lane: int) -> None:
        self._stepless[lane] += 1
        if self._stepless[lane] >= ATTEMPTS:
            last = self._episodes[lane] - 1
            raise NonFiniteError(
                f"lane {lane}: in {ATTEMPTS} episodes in a row ({last - ATTEMPTS + 1} to {last}) "
                "the first observation or the first step was not finite (nan or inf), so that "
                "nothing of them could be stored; correct the environment"
            )

    def _place(self, lane: int | None) -> str:
        if lane is None:
            return f"lanes 0 to {self._n_lanes - 1}, step {self.steps} of them all"
        episode = self._writer.open_episode(lane)
        step = 0 if episode is None else episode.steps
        return f"lane {lane}, episode {self._episodes[lane] - 1}, step {step}"

    def _record(
        self,
        lane: int,
        decision: PolicyStep,
        transition: Transition,
        finished: list[FinishedEpisode],
    ) -> None:
        """Store a lane's step; the episode that it ended is added to ``finished``."""
        action, raw_action, behaviour, behaviour_kind, value = decision
        observation, reward, terminated, truncated, info = transition
        if value is not None:
            self._values[lane].append(value)
        record = self._writer.step(
            lane,
            action=action,
            reward=reward,
            observation=observation,
            terminated=terminated,
            truncated=truncated,
            raw_action=raw_action,
            behaviour=behaviour,
            behaviour_kind=behaviour_kind,
            policy_update=self.policy_update,
            life_lost=self._life_lost(lane, info),
            info=info,
        )
        self._observations[lane] = observation
        if record is not None:
            self._open[lane] = False
            self._stepless[lane] = 0
            values = self._acting_values(lane, record.length)
            finished.append(FinishedEpisode(record, values))
        elif self._writer.nonfinite_episodes != self._cut_episodes:
            self._cut_episodes = self._writer.nonfinite_episodes
            self._open[lane] = self._writer.open_episode(lane) is not None
            if not self._open[lane]:
                self._count_stepless(lane)

    def _life_lost(self, lane: int, info: Mapping[str, Any]) -> bool:
        if self._lives is None:
            return False
        try:
            return self._lives.lost(lane, info)
        except EnvironmentFaultError as error:
            raise EnvironmentFaultError(f"{self._place(lane)}: {error}") from error

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
        state = {
            "steps": self.steps,
            "episodes": list(self._episodes),
            "values": [np.array(values, np.float32) for values in self._values],
        }
        return state if self._lives is None else state | {"lives": list(self._lives.left)}

    def restore(self, state: Mapping[str, Any], leaves: Sequence[Leaf]) -> None:
        """Goes on from ``state``, with the writer's open episodes replayed in the lanes.

        Args:
            state: What :meth:`state` gave.
            leaves: The observation's leaves in the store's schema.
        """
        self.steps = state["steps"]
        self._episodes = list(state["episodes"])
        self._values = [[float(value) for value in values] for values in state["values"]]
        if self._lives is not None:
            self._lives.left = list(state["lives"])
        stored = {}
        for lane in range(self._n_lanes):
            episode = self._writer.open_episode(lane)
            if episode is not None:
                self._open[lane] = True
                self._policy.begin(lane, episode.steps)
                columns = self._writer.open_rows(lane)
                stored[lane] = StoredEpisode(
                    _known_seed(episode), episode.steps, columns, episode.lane_episode
                )
        for lane, observation in restore_episodes(self._lanes, stored, leaves).items():
            self._observations[lane] = observation


def _known_seed(episode: OpenEpisode) -> int:
    if episode.seed is None:
        raise CheckpointError(
            f"the open episode at row {episode.start} of segment {episode.segment} has no seed, so "
            "it cannot be replayed; it was not written by a training run"
        )
    return episode.seed
