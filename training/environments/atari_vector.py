"""Several games of one kind in ALE's vector environment, which preprocesses frames in C++."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from storage.randomness import derive_seed
from training.environments.atari import ATARI, atari_games, find_game
from training.environments.atari_settings import AtariSettings, atari_settings

if TYPE_CHECKING:
    from training.environments.environment_config import EnvironmentConfig

__all__ = ["AtariVector", "Frames", "atari_vector"]

Frames = NDArray[np.uint8]

_SEEDS: Final = 2**31
"""Seeds that the emulator tells apart."""
_UNSEEDED: Final = -1


class AtariVector(VectorEnv[Frames, NDArray[np.int64], NDArray[Any]]):
    """Games side by side in one thread, behind gymnasium's vector interface.

    ALE's own vector environment clips rewards, presses the fire button, begins with no-ops and
    takes a thread for each core unless told otherwise. It is told otherwise, and resets single
    games by ``options={"reset_mask": …}`` with one seed a game, as gymnasium's own do.

    A game that is over would be reset by its next step. Who resets it before, with a seed, gets
    the very episode that a game of its own would show for that seed.

    Args:
        game: A name that `training.environments.atari.find_game` gave.
        settings: How games are shown.
        num_envs: How many games there are.
    """

    def __init__(self, game: str, settings: AtariSettings, num_envs: int) -> None:
        from ale_py.vector_env import AtariVectorEnv

        self._games: Any = AtariVectorEnv(
            atari_games()[game],
            num_envs,
            num_threads=1,
            max_num_frames_per_episode=settings.max_frames,
            repeat_action_probability=float(settings.sticky),
            full_action_space=settings.full_actions,
            autoreset_mode=AutoresetMode.NEXT_STEP,
            img_height=settings.screen,
            img_width=settings.screen,
            stack_num=settings.stack,
            frameskip=settings.frame_skip,
            noop_max=settings.noop_max,
            reward_clipping=False,
            use_fire_reset=False,
        )
        self.metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}
        self.num_envs = num_envs
        self.single_observation_space = self._games.single_observation_space
        self.single_action_space = self._games.single_action_space
        self.observation_space = self._games.observation_space
        self.action_space = self._games.action_space
        self._n_actions = len(self._games.ale.get_action_set())
        self._all = np.ones(num_envs, np.bool_)

    @property
    def action_names(self) -> list[str]:
        """What each action does, such as NOOP or FIRE."""
        return [action.name for action in self._running().ale.get_action_set()]

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[Frames, dict[str, Any]]:
        """Starts episodes; the observations and infos of all games.

        Args:
            seed: One a game; a number seeds game i with seed + i, None leaves a game to chance.
            options: ``reset_mask``, which games start anew; all, without it.
        """
        mask = self._all if options is None else options.get("reset_mask", self._all)
        seeds = [_emulator_seed(each) for each in self._seeds(seed)]
        shown, infos = self._running().reset(
            seed=np.array(seeds, np.int64)[mask], options={"reset_mask": mask}
        )
        return shown, self._marked(infos)

    def step(
        self, actions: NDArray[Any]
    ) -> tuple[Frames, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Steps all games.

        Raises:
            ValueError: an action that the game does not have, which the emulator would not notice.
        """
        chosen = np.ascontiguousarray(actions, np.int64)
        if ((chosen < 0) | (chosen >= self._n_actions)).any():
            raise ValueError(f"actions {chosen.tolist()}: a game has 0 to {self._n_actions - 1}")
        shown, rewards, terminated, truncated, infos = self._running().step(chosen)
        return shown, rewards, terminated, truncated, self._marked(infos)

    def close_extras(self, **kwargs: Any) -> None:  # noqa: ARG002
        """Ends the games and their thread."""
        self._games = None

    def _running(self) -> Any:
        if self._games is None:
            raise gymnasium.error.ClosedEnvironmentError("the Atari games were closed")
        return self._games

    def _seeds(self, seed: int | Sequence[int | None] | None) -> Sequence[int | None]:
        if seed is None:
            return [None] * self.num_envs
        return [seed + game for game in range(self.num_envs)] if isinstance(seed, int) else seed

    def _marked(self, infos: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
        """The infos, and that every game has each of them."""
        return {**infos, **{f"_{name}": self._all for name in infos}}


def atari_vector(config: EnvironmentConfig, num_envs: int) -> AtariVector | None:
    """The games that ``config`` names; None where that is no game, or one with wrappers.

    Wrappers are made for single environments.
    """
    if not config.id.startswith(ATARI) or config.wrappers:
        return None
    return AtariVector(find_game(config.id), atari_settings(config.kwargs), num_envs)


def _emulator_seed(seed: int | None) -> int:
    """A seed that the emulator can hold; each of those stands for itself."""
    if seed is None:
        return _UNSEEDED
    return seed if seed < _SEEDS else derive_seed(seed, "emulator")
