"""How an Atari game is shown to an agent."""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from storage.errors import ConfigError
from training.environments.atari import ATARI

if TYPE_CHECKING:
    from training.environments.environment_config import EnvironmentConfig

__all__ = ["MOST_NOOPS", "AtariSettings", "atari_settings", "noop_refusal"]

_WHERE: Final = "environment.kwargs"
_INT_END: Final = 2**31
"""The first whole number that the emulator's settings cannot hold."""
MOST_NOOPS: Final = 60
"""A second of the emulator, twice what papers use. Until then no game for one player takes a life
from who does nothing, and none but Entombed and Skiing gives points; such points are in no score.
"""
_LARGEST: Final = {"stack": 256, "screen": 1024, "noop_max": MOST_NOOPS}
"""Of stack and screen: far beyond any use, and far below what takes all memory."""
_LEAST: Final = {"frame_skip": 1, "stack": 1, "screen": 1, "noop_max": 0, "max_frames": 1}


@dataclass(frozen=True, slots=True)
class AtariSettings:
    """Settings of an Atari game; the defaults are those of PSER's authors (and of DQN's).

    Frames are grey, each pixel the maximum of the step's last two frames. Rewards are the game's
    points. A lost life ends no episode, and no button is pressed to start a game.

    Args:
        frame_skip: Frames of the emulator that one action is held for: a step.
        stack: Frames that an observation shows, each of one step, the newest last.
        screen: Height and width that frames are scaled to, by area.
        noop_max: An episode begins with 0 to this many frames of doing nothing, drawn from its
            seed; 30 in the "no-op starts" of evaluations, at most `MOST_NOOPS`. Points that the
            game gives meanwhile are no rewards.
        sticky: Probability, each frame, that the emulator repeats the last action instead; 0.25 is
            what Machado et al. (2018) recommend.
        full_actions: All 18 actions of the joystick, instead of those that the game knows.
        max_frames: Frames after which an episode is truncated, no-op starts not counted.

    Raises:
        ConfigError: a value of a wrong type or out of range; it is named.
    """

    frame_skip: int = 4
    stack: int = 4
    screen: int = 84
    noop_max: int = 0
    sticky: float = 0.0
    full_actions: bool = False
    max_frames: int = 108_000

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            _check_count(name, getattr(self, name), least, _LARGEST.get(name, _INT_END - 1))
        if type(self.full_actions) is not bool:
            raise ConfigError(_refusal("full_actions", self.full_actions, "true or false"))
        if type(self.sticky) not in (int, float) or not 0 <= self.sticky < 1:
            wanted = "a probability from 0 and below 1"
            raise ConfigError(_refusal("sticky", self.sticky, wanted))

    @property
    def max_steps(self) -> int:
        """Steps after which an episode is truncated."""
        return math.ceil(self.max_frames / self.frame_skip)

    @property
    def deterministic(self) -> bool:
        """Whether a policy without noise plays the same game whatever the seed."""
        return not self.noop_max and not self.sticky


def atari_settings(values: Mapping[str, Any]) -> AtariSettings:
    """The settings of which ``environment.kwargs`` gives some.

    Raises:
        ConfigError: as `AtariSettings`, or there is no such setting; the nearest name is given.
    """
    known = [each.name for each in dataclasses.fields(AtariSettings)]
    for name in values:
        if name not in known:
            close = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
            hint = f"; did you mean {close[0]}?" if close else "."
            raise ConfigError(
                f"Atari games have no setting {_WHERE}.{name}{hint} Settings here: "
                f"{', '.join(known)}"
            )
    return AtariSettings(**values)


def same_game_hint(config: EnvironmentConfig, episodes: int) -> str | None:
    """What to say where a greedy policy plays so many times the same game; None elsewhere."""
    if episodes < 2 or config.wrappers or not config.id.startswith(ATARI):
        return None
    if not atari_settings(config.kwargs).deterministic:
        return None
    return (
        f"{episodes} greedy episodes of {config.id} are one and the same game without no-op starts "
        "and sticky actions; no-op starts begin each in its own way"
    )


def noop_refusal() -> str:
    """What a number of no-ops must be, and why."""
    return (
        f"a whole number from 0 to {MOST_NOOPS}: papers use 30, and what a game gives or takes in "
        "longer starts is in no score"
    )


def _check_count(name: str, value: Any, least: int, most: int) -> None:
    if type(value) is not int or not least <= value <= most:
        if name == "noop_max":
            raise ConfigError(_refusal(name, value, noop_refusal()))
        raise ConfigError(_refusal(name, value, f"a whole number from {least} to {most:,}"))


def _refusal(name: str, value: Any, wanted: str) -> str:
    return f"{_WHERE}.{name} is {value!r}; it must be {wanted}"
