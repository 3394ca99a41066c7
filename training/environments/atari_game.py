"""One Atari game as agents of the DQN papers see it."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec

from training.environments.atari import ATARI, find_game
from training.environments.atari_settings import AtariSettings
from training.environments.atari_vector import AtariVector, Frames
from training.environments.recording import Recording

__all__ = ["AtariGame"]

_SEEDS = 2**31


class AtariGame(gymnasium.Env[Frames, Any]):
    """An Atari game: stacks of small grey frames, points as rewards, joystick actions.

    Observations are uint8 (stack, screen, screen), (4, 84, 84) by default, the newest frame last;
    an episode's first ones have zeros in front of its first frame. An episode is a function of its
    reset's seed and its actions, no-op starts and sticky actions included, whatever was played
    before. ``info`` has ``lives`` and ``episode_frame_number``.

    Args:
        game: Such as "Pong", "space_invaders" or "Atari/SpaceInvaders".
        settings: How the game is shown.

    Raises:
        EnvironmentNotFoundError: no such game, or ale-py is not installed.

    Example:
        >>> game = AtariGame("Pong", AtariSettings(sticky=0.25))
        >>> observation, info = game.reset(seed=1)
        >>> observation.shape, info["lives"]
        ((4, 84, 84), 0)
    """

    metadata = {"render_modes": []}  # noqa: RUF012 - gymnasium's declaration

    def __init__(self, game: str, settings: AtariSettings | None = None) -> None:
        self.settings = settings = settings or AtariSettings()
        name = find_game(game)
        self._games = AtariVector(name, settings, 1)
        self.spec = EnvSpec(ATARI + name, max_episode_steps=settings.max_steps)
        self.observation_space = self._games.single_observation_space
        self.action_space = self._games.single_action_space
        self.action_names = self._games.action_names
        """What each action does, such as NOOP or FIRE."""
        self.recording = Recording(settings.stack, "zero", life_loss=True)
        """How stores keep what this environment shows."""
        self._playing = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Frames, dict[str, Any]]:
        """Starts an episode; without a seed, the next one of the latest seed's sequence."""
        super().reset(seed=seed, options=options)
        chosen = int(self.np_random.integers(_SEEDS)) if seed is None else seed
        shown, infos = self._games.reset(seed=[chosen])
        self._playing = True
        return shown[0], _info(infos)

    def step(self, action: Any) -> tuple[Frames, float, bool, bool, dict[str, Any]]:
        """Holds the action for `settings.frame_skip` frames.

        Raises:
            gymnasium.error.ResetNeeded: no episode is being played.
            ValueError: the game has no such action.
        """
        if not self._playing:
            raise gymnasium.error.ResetNeeded("no episode is being played; reset the game first")
        shown, rewards, terminated, truncated, infos = self._games.step(np.array([action]))
        over, cut = bool(terminated[0]), bool(truncated[0])
        self._playing = not (over or cut)
        return shown[0], float(rewards[0]), over, cut, _info(infos)

    def close(self) -> None:
        """Ends the emulator."""
        self._playing = False
        self._games.close()


def _info(infos: dict[str, Any]) -> dict[str, Any]:
    return {name: int(infos[name][0]) for name in ("lives", "episode_frame_number")}
