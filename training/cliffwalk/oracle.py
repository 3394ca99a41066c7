"""The oracle: it knows Q*, and replays what brings Q closest to it."""

from __future__ import annotations

import numpy as np

from storage.kernel import Floats, Index, Integers, kernel
from training.cliffwalk.environment import ACTIONS, BlindCliffwalk, right_action
from training.cliffwalk.learner import Flags, Learner, learn, mean_squared_error

__all__ = ["Oracle"]


@kernel
def _best(
    parameters: Floats,
    numbers: Floats,
    truth: Floats,
    observation: Integers,
    action: Integers,
    reward: Floats,
    next_observation: Integers,
    terminated: Flags,
) -> Index:
    """The first transition of those whose update leaves the smallest mean squared error."""
    tried = np.empty_like(parameters)
    error = np.empty(1, np.float32)
    best, smallest = 0, np.inf
    for i in range(observation.size):
        tried[:] = parameters
        here = slice(i, i + 1)
        learn(
            tried,
            numbers,
            observation[here],
            action[here],
            reward[here],
            next_observation[here],
            terminated[here],
            error,
        )
        left = mean_squared_error(tried, numbers, truth)
        if left < smallest:
            best, smallest = i, left
    return best


class Oracle:
    """Chooses among the different transitions of the memory; it needs no view.

    What a memory holds many copies of counts once: the oracle looks at what an update does.
    """

    def __init__(self, n: int) -> None:
        self._transitions = _different_transitions(n)

    def update(self, learner: Learner) -> float:
        """Learns from the transition whose update lowers the loss most; gives its reward."""
        best = _best(learner.parameters, learner.numbers, learner.truth, *self._transitions)
        observation, action, reward, next_observation, terminated = self._transitions
        here = slice(best, best + 1)
        learn(
            learner.parameters,
            learner.numbers,
            observation[here],
            action[here],
            reward[here],
            next_observation[here],
            terminated[here],
            learner.errors,
        )
        return float(reward[best])


def _different_transitions(n: int) -> tuple[Integers, Integers, Floats, Integers, Flags]:
    """Each action in each state once: observation, action, reward, next observation, terminated.

    The environment is walked along its right actions, and once into each cliff.
    """
    env = BlindCliffwalk(n)
    found = []
    for state in range(n):
        for action in range(ACTIONS):
            observation, _ = env.reset()
            while observation < state:
                observation = env.step(right_action(observation))[0]
            after, reward, terminated, _, _ = env.step(action)
            found.append((observation, action, reward, after, terminated))
    observations, actions, rewards, successors, ends = zip(*found, strict=True)
    return (
        np.array(observations, np.int64),
        np.array(actions, np.int64),
        np.array(rewards),
        np.array(successors, np.int64),
        np.array(ends),
    )
