"""Environment lanes: several episodes side by side behind one small contract.

The collector neither knows vector environments nor autoreset modes; every :class:`Lanes` hides
them, so that a policy's stored episodes are the same whichever is used. A policy that learns
meanwhile sees other updates: with separate environments between the steps of two lanes, with a
vector environment between two steps of all of them.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import gymnasium
import numpy as np

from storage.errors import ConfigError
from training.environments.environment_contract import (
    fault,
    flag,
    reset_parts,
    reward_number,
    step_parts,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["EnvLanes", "Lanes", "Transition", "own_copy"]

_IMMUTABLE = (np.generic, int, float, str, bytes)

Environment = gymnasium.Env[Any, Any]


class Transition(NamedTuple):
    """What one environment step showed."""

    observation: Any
    """The observation after the step; at an episode's end the true final one, never the first of
    the next episode."""
    reward: float
    """Raw reward."""
    terminated: bool
    """The environment reached a terminal state."""
    truncated: bool
    """The episode was cut, by a step limit for instance."""
    info: Mapping[str, Any]
    """The environment's info of this step."""


class Lanes(Protocol):
    """A fixed number of environments that are reset one by one and stepped in groups.

    Contract: the collector calls ``reset`` before a lane's first step and after each transition
    that ended an episode, always with a seed; it calls ``step`` with the lanes of one group
    (``stride`` consecutive lanes, a multiple of ``stride`` first) and one action for each.
    An implementation returns one :class:`Transition` a lane, never a dummy of an automatic reset,
    must not touch lanes outside the group, and must draw no randomness of its own. Environments may
    change the actions that they receive and the observations that they returned: they are handed
    copies of the ones, and copies of the others are what comes out.
    """

    n_lanes: int
    stride: int
    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]

    def reset(self, lane: int, seed: int) -> tuple[Any, Mapping[str, Any]]:
        """Starts an episode in ``lane``; its first observation and info."""

    def step(self, first: int, actions: Sequence[Any]) -> list[Transition]:
        """Steps lanes ``first … first + len(actions) - 1``."""

    def close(self) -> None:
        """Closes the environments."""


class EnvLanes:
    """Lanes over separate environments in this process, each stepped alone (``stride`` 1).

    Args:
        makers: One constructor a lane.

    Raises:
        ConfigError: no lane, or lanes of different spaces.
    """

    stride = 1

    def __init__(self, makers: Sequence[Callable[[], Environment]]) -> None:
        if not makers:
            raise ConfigError("lanes is 0; at least one environment lane is needed")
        self._envs = [make() for make in makers]
        self.n_lanes = len(self._envs)
        self.observation_space = self._envs[0].observation_space
        self.action_space = self._envs[0].action_space
        for lane, env in enumerate(self._envs):
            _check_spaces(lane, env, self._envs[0])

    @property
    def environments(self) -> tuple[Environment, ...]:
        """The environments, one a lane."""
        return tuple(self._envs)

    def reset(self, lane: int, seed: int) -> tuple[Any, Mapping[str, Any]]:
        """Starts an episode in ``lane``; its first observation and info.

        Raises:
            EnvironmentFaultError: the environment raised an error, or gave something else.
        """
        try:
            shown = self._envs[lane].reset(seed=seed)
        except (Exception, SystemExit) as error:
            raise fault(lane, f"reset(seed={seed})", error) from error
        observation, info = reset_parts(lane, shown)
        return own_copy(observation), info

    def step(self, first: int, actions: Sequence[Any]) -> list[Transition]:
        """Steps lanes ``first … first + len(actions) - 1`` one after the other.

        Raises:
            EnvironmentFaultError: an environment raised an error, or gave something else.
        """
        transitions = []
        for lane, action in enumerate(actions, first):
            try:
                shown = self._envs[lane].step(own_copy(action))
            except (Exception, SystemExit) as error:
                raise fault(lane, f"step({action!r})", error) from error
            transitions.append(_transition(lane, shown))
        return transitions

    def close(self) -> None:
        """Closes the environments."""
        for env in self._envs:
            env.close()


def _transition(lane: int, shown: Any) -> Transition:
    observation, reward, terminated, truncated, info = step_parts(lane, shown)
    if type(reward) is not float:
        reward = reward_number(lane, reward)
    if type(terminated) is not bool:
        terminated = flag(lane, "terminated", terminated)
    if type(truncated) is not bool:
        truncated = flag(lane, "truncated", truncated)
    return Transition(own_copy(observation), reward, terminated, truncated, info)


def own_copy(value: Any) -> Any:
    """A value of a space that shares no memory with ``value``."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, _IMMUTABLE):
        return value
    if isinstance(value, Mapping):
        return {key: own_copy(each) for key, each in value.items()}
    if type(value) is tuple:
        return tuple(own_copy(each) for each in value)
    return copy.deepcopy(value)


def _check_spaces(lane: int, env: Environment, first: Environment) -> None:
    for name in ("observation_space", "action_space"):
        if getattr(env, name) != getattr(first, name):
            raise ConfigError(
                f"lane {lane} has {name} {getattr(env, name)}, lane 0 has {getattr(first, name)}; "
                "every lane of a store must have the same spaces"
            )
