"""DQN's policies: a random action now and then, or the softmax of the values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from storage.layout import BehaviourKind
from storage.randomness import stream_key
from storage.spaces import flatten_space, leaf_values
from training.acting.policy import PolicyStep
from training.batches.discrete_kernels import choose, fill_policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from gymnasium.spaces import Discrete

    from storage import EnvironmentSpec
    from training.agents.dqn.acting import QActor

__all__ = ["DiscretePolicy"]

_NOISE = "discrete action"


class DiscretePolicy:
    """Draws one discrete action by the values of all (a `Policy`).

    The behaviour that is stored is the whole distribution, so that importance ratios are exact.

    Args:
        actor: Gives the values.
        spec: The environment's spaces.
        exploration: Probability of a random action by the number of the environment step; plays no
            role with a temperature.
        temperature: That of the softmax; 0 for epsilon-greedy.
        seed: The run's.
    """

    def __init__(
        self,
        actor: QActor,
        spec: EnvironmentSpec,
        exploration: Callable[[int], float],
        *,
        temperature: float,
        seed: int,
    ) -> None:
        space: Discrete = spec.action_space  # type: ignore[assignment]
        self._actor = actor
        self._leaves = flatten_space(spec.observation_space, "observation")
        self._nested = self._leaves[0].space is not spec.observation_space
        number = np.dtype(space.dtype).type
        self._actions = [number(space.start + index) for index in range(int(space.n))]
        self._exploration = exploration
        self._held: float | None = None
        self._temperature = temperature
        self._key = stream_key(seed, _NOISE)
        self._kind = int(BehaviourKind.CATEGORICAL)

    def hold(self, epsilon: float) -> None:
        """From here on acts at random with this probability, whatever the step: outside of runs."""
        self._held = epsilon

    def begin(self, lane: int, steps: int) -> None:
        """Nothing of this policy is tied to an episode."""

    def act(
        self, lane: int, step_index: int, observation: Any, *, greedy: bool = False
    ) -> PolicyStep:
        """Draw an action, or take the one with the largest value if ``greedy``."""
        held = self._exploration(step_index) if self._held is None else self._held
        return self.act_by(lane, step_index, observation, 0.0 if greedy else held, greedy=greedy)

    def act_by(
        self,
        lane: int,
        step_index: int,
        observation: Any,
        epsilon: float,
        *,
        greedy: bool = False,
    ) -> PolicyStep:
        """Draw an action, a random one with probability ``epsilon``."""
        temperature = 0.0 if greedy else self._temperature
        probabilities = np.empty(len(self._actions), np.float32)
        if temperature == 0.0 and epsilon == 1.0:
            values = np.zeros(probabilities.size, np.float32)  # they play no role
        else:
            values = self._values(observation)
        fill_policy(values, epsilon, temperature, probabilities)
        index = choose(self._key, step_index, lane, probabilities)
        return PolicyStep(self._actions[index], None, probabilities, self._kind, None)

    def value(self, observation: Any) -> None:  # noqa: ARG002
        """No state value: None."""
        return

    def _values(self, observation: Any) -> Any:
        if not self._nested:
            return self._actor.values(np.asarray(observation)[None])[0]
        parts = leaf_values(observation, self._leaves)
        named = zip(self._leaves, parts, strict=True)
        return self._actor.values({leaf.name: np.asarray(part)[None] for leaf, part in named})[0]
