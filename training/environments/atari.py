"""Atari games of the Arcade Learning Environment (ALE), by name.

Gymnasium knows ``ALE/Pong-v5`` and the like once `register_atari` has asked it to. ``Atari/Pong``
is ours: the same emulator with the preprocessing of the DQN papers (see `atari_game`).
"""

from __future__ import annotations

import difflib
import functools
import importlib.util
import re
from typing import TYPE_CHECKING, Final

from storage.errors import EnvironmentNotFoundError

if TYPE_CHECKING:
    from training.environments.environment_config import EnvironmentConfig

__all__ = [
    "ATARI",
    "atari_games",
    "atari_hint",
    "find_game",
    "missing_package",
    "register_atari",
    "screens_hint",
    "stored_id",
]

ATARI: Final = "Atari/"
"""What the ids of Atari games with our preprocessing begin with."""

_ALE: Final = "ALE/"
_TWO_PLAYERS: Final = frozenset({"combat", "joust", "maze_craze", "warlords"})
"""Games that nobody can play alone: the emulator ends the process when asked for one."""
_VERSION: Final = re.compile(r"-v\d+$")


def register_atari() -> bool:
    """Registers the environments of ale_py, without its banner; whether it is installed."""
    if importlib.util.find_spec("ale_py") is None:
        return False
    import ale_py
    import gymnasium

    # The emulator prints its version whenever it starts, unless it is to report errors only.
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    gymnasium.register_envs(ale_py)
    return True


@functools.cache
def atari_games() -> dict[str, str]:
    """Names of the games that one plays alone, such as "SpaceInvaders", and ALE's own of each.

    Raises:
        EnvironmentNotFoundError: ale-py is not installed.
    """
    if not register_atari():
        raise missing_package(f"{ATARI}…")
    from ale_py import roms

    single = sorted(set(roms.get_all_rom_ids()) - _TWO_PLAYERS)
    return {rom.title().replace("_", ""): rom for rom in single}


def find_game(identifier: str) -> str:
    """The game that an id such as "Atari/SpaceInvaders" or "Atari/space_invaders" names.

    Capitals and underscores make no difference.

    Raises:
        EnvironmentNotFoundError: no such game (close names are listed), one for two players, an id
            with a version, or ale-py is not installed.
    """
    wanted = identifier.removeprefix(ATARI)
    if importlib.util.find_spec("ale_py") is None:
        raise missing_package(identifier)
    unversioned = _VERSION.sub("", wanted)
    game = _by_plain_name().get(_plain(unversioned))
    if _plain(unversioned) in _two_players():
        raise EnvironmentNotFoundError(
            f"{identifier!r} needs two players, and environments here have one; choose another game"
        )
    if game is None:
        raise EnvironmentNotFoundError(f"no Atari game is called {identifier!r}. {_close(wanted)}")
    if unversioned != wanted:
        raise EnvironmentNotFoundError(
            f"{identifier!r} has a version, and Atari games have none here: their settings are in "
            f"environment.kwargs. Say {ATARI}{game}, or {_ALE}{game}-v5 for what gymnasium makes "
            "of that version"
        )
    return game


def atari_hint(identifier: str) -> str | None:
    """What to say of an unknown id that is ours but for the capitals of "Atari/"; else None."""
    if not identifier.lower().startswith(ATARI.lower()):
        return None
    try:
        return f"Did you mean {ATARI}{find_game(ATARI + identifier[len(ATARI) :])}?"
    except EnvironmentNotFoundError as error:
        return f"Atari games begin with {ATARI}, so spelled: {error}"


def screens_hint(config: EnvironmentConfig) -> str | None:
    """What to say of the bare screens of ``ALE/…``; None for others, and behind wrappers."""
    bare = config.id.startswith(_ALE) and config.kwargs.get("obs_type") != "ram"
    if config.wrappers or not bare:
        return None
    name = _VERSION.sub("", config.id.removeprefix(_ALE))
    return (
        f"{config.id} shows single screens of 210 by 160 pixels; {ATARI}{name} shows what the DQN "
        "papers' agents saw, four grey frames of 84 by 84"
    )


def missing_package(identifier: str) -> EnvironmentNotFoundError:
    """The error for an id that needs ale-py where it is not installed."""
    return EnvironmentNotFoundError(
        f"environment {identifier!r} needs the package ale-py: pip install ale-py"
    )


def _by_plain_name() -> dict[str, str]:
    return {_plain(game): game for game in atari_games()}


def _two_players() -> dict[str, str]:
    return {_plain(rom): rom.title().replace("_", "") for rom in _TWO_PLAYERS}


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _close(name: str) -> str:
    several = {plain: f"{game} (two players)" for plain, game in _two_players().items()}
    names = _by_plain_name() | several
    close = difflib.get_close_matches(_plain(name), names, n=5, cutoff=0.6)
    if close:
        return f"Close names: {', '.join(ATARI + names[each] for each in close)}"
    games = sorted(atari_games())
    return f"There are {len(games)} games, from {ATARI}{games[0]} to {ATARI}{games[-1]}"


def stored_id(identifier: str) -> str:
    """The name that a store keeps of an environment with this id: one for all ways to spell it.

    Raises:
        EnvironmentNotFoundError: no such Atari game.
    """
    return ATARI + find_game(identifier) if identifier.startswith(ATARI) else identifier
