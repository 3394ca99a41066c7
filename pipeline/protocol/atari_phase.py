"""The evaluation phase of DQN's protocol: episodes of a game until a budget of frames is spent."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from gymnasium.spaces import Discrete

from storage.errors import ConfigError
from storage.kernel import Index, kernel
from storage.randomness import bounded, derive_seed, philox, stream_key, uniform_double
from training.environments.atari import ATARI
from training.environments.atari_settings import AtariSettings, atari_settings
from training.environments.environment import make_environment
from training.environments.environment_config import EnvironmentConfig
from training.environments.episode_limit import episode_limit
from training.evaluation import Episode, play_episode

if TYPE_CHECKING:
    import gymnasium

    from training.agent import ReplayAgent

__all__ = [
    "AtariPhase",
    "NearlyGreedy",
    "PlayedPhase",
    "check_atari",
    "departures",
    "play_phase",
]

_PURPOSE = "atari protocol"


@dataclass(frozen=True, slots=True)
class AtariPhase:
    """One evaluation phase; the defaults are those of DQN's and PSER's experiments."""

    frames: int = 500_000
    """Frames of the emulator after which no further episode begins."""
    epsilon: float = 0.001
    """Probability of a uniformly random action."""
    noop_max: int = 30
    """An episode begins with up to this many frames of doing nothing."""
    seed: int = 0
    """Resets and random actions are derived from it."""


@dataclass(frozen=True, slots=True)
class PlayedPhase:
    """What has been played of a phase."""

    episodes: list[Episode]
    """Those that have ended."""
    frames: int
    """Of these episodes."""
    complete: bool
    """Whether the budget is spent; if not, the user has interrupted the phase."""


class NearlyGreedy:
    """Acts greedily, but for a uniformly random action with probability epsilon.

    The k-th action is a pure function of (seed, k) and of what is observed.
    """

    def __init__(
        self, act: Callable[[Any], Any], space: Discrete, epsilon: float, seed: int
    ) -> None:
        self._act = act
        self._epsilon = epsilon
        self._key = stream_key(seed, _PURPOSE)
        number = np.dtype(space.dtype).type
        self._actions = [number(space.start + index) for index in range(int(space.n))]
        self._count = 0

    def __call__(self, observation: Any) -> Any:
        """The next action."""
        number = _random_action(*self._key, self._count, self._epsilon, len(self._actions))
        self._count += 1
        return self._act(observation) if number < 0 else self._actions[number]


@kernel
def _random_action(k0: np.uint64, k1: np.uint64, count: Index, epsilon: float, n: Index) -> Index:
    """A random one of n actions with probability epsilon, else -1."""
    zero = np.uint64(0)
    block = philox(k0, k1, np.uint64(count), zero, zero, zero)
    return bounded(block[1], n) if uniform_double(block[0]) < epsilon else np.int64(-1)


def check_atari(config: EnvironmentConfig) -> None:
    """Refuses what is no Atari game.

    Raises:
        ConfigError: saying what the protocol plays.
    """
    if not config.id.startswith(ATARI):
        raise ConfigError(
            f"{config.id} is no Atari game with no-op starts and a cap of frames; the protocol "
            f"plays checkpoints of runs on {ATARI}GAME, such as {ATARI}Pong"
        )


def departures(agent: ReplayAgent) -> list[str]:
    """Settings of the agent's game in which it is another than the protocol's, in words."""
    config = agent.config.environment
    check_atari(config)
    own, usual = atari_settings(config.kwargs), AtariSettings()
    wrappers = ", ".join(wrapper.class_path for wrapper in config.wrappers)
    return [f"the game is wrapped in {wrappers}"] * bool(wrappers) + [
        f"{name} is {getattr(own, name)}, the protocol's {getattr(usual, name)}"
        for name in ("max_frames", "frame_skip", "full_actions", "sticky")
        if getattr(own, name) != getattr(usual, name)
    ]


def play_phase(
    agent: ReplayAgent, phase: AtariPhase, told: Callable[[int], None] = lambda _: None
) -> PlayedPhase:
    """Plays whole episodes until `phase.frames` are spent; `told` gets the frames so far.

    An interrupt (`KeyboardInterrupt`) ends it, and what was played before is given back. Scores
    are sums of raw rewards. Frames are steps times the frames of a step; those of no-op starts do
    not count.

    Raises:
        ConfigError: the environment is no Atari game, its actions are no Discrete (so that there is
            no epsilon), or nothing limits its episodes.
    """
    config = agent.config.environment
    check_atari(config)
    skip = atari_settings(config.kwargs).frame_skip
    kwargs = config.kwargs | {"noop_max": phase.noop_max}
    env = make_environment(dataclasses.replace(config, kwargs=kwargs))
    episodes: list[Episode] = []
    try:
        _check(env, config.id)
        space = cast("Discrete", env.action_space)
        act = NearlyGreedy(agent.act, space, phase.epsilon, phase.seed)
        while _steps(episodes) * skip < phase.frames:
            seed = derive_seed(phase.seed, _PURPOSE, len(episodes))
            episodes.append(play_episode(env, act, seed))
            told(_steps(episodes) * skip)
    except KeyboardInterrupt:
        pass
    finally:
        env.close()
    frames = _steps(episodes) * skip
    return PlayedPhase(episodes, frames, frames >= phase.frames)


def _steps(episodes: list[Episode]) -> int:
    return sum(episode.length for episode in episodes)


def _check(env: gymnasium.Env[Any, Any], name: str) -> None:
    if not isinstance(env.action_space, Discrete):
        raise ConfigError(
            f"{name} is acted in by {env.action_space!r}; the protocol takes a random one of a "
            "Discrete space's actions now and then, which only agents such as dqn have"
        )
    if episode_limit(env) is None:
        raise ConfigError(
            f"{name} has no limit of steps, so that an episode could go on forever; give it one by "
            "environment.wrappers [{class_path: TimeLimit, kwargs: {max_episode_steps: 27000}}]"
        )
