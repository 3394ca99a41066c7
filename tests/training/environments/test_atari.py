from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from storage.errors import EnvironmentNotFoundError
from training.environments.atari import atari_games, find_game, screens_hint
from training.environments.environment import make_environment
from training.environments.environment_config import EnvironmentConfig, WrapperConfig


def test_atari_is_found_in_a_fresh_process_without_its_banner():
    """ale_py may not be imported yet, and its emulator introduces itself on stderr."""
    script = (
        "import gymnasium\n"
        "for name in [n for n in gymnasium.registry if n.startswith('ALE/')]:\n"
        "    del gymnasium.registry[name]\n"
        "from training.environments.environment import make_environment\n"
        "from training.environments.environment_config import EnvironmentConfig\n"
        "for name in ['Atari/pong', 'ALE/Pong-v5', 'ALE/Pong', 'PongNoFrameskip-v4']:\n"
        "    print(make_environment(EnvironmentConfig(name)).spec.id)\n"
    )
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", script]
    shown = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    made = ["Atari/Pong", "ALE/Pong-v5", "ALE/Pong-v5", "PongNoFrameskip-v4"]
    assert shown.stdout.split() == made
    assert shown.stderr == ""


@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("ALE/Pongg-v5", "ALE/Pong-v5"),
        ("Breakot-v4", "Breakout-v4"),
        ("Atari/Breakot", "Atari/Breakout"),
        ("Atari/space_invader", "Atari/SpaceInvaders"),
    ],
)
def test_close_names_of_unknown_games(name, close):
    with pytest.raises(EnvironmentNotFoundError, match=f"Close names: {close}"):
        make_environment(EnvironmentConfig(name))


@pytest.mark.parametrize(
    ("spelled", "game"),
    [
        ("Atari/Pong", "Pong"),
        ("Atari/pong", "Pong"),
        ("Atari/SpaceInvaders", "SpaceInvaders"),
        ("Atari/space_invaders", "SpaceInvaders"),
        ("spaceinvaders", "SpaceInvaders"),
        ("Atari/ms_pacman", "MsPacman"),
        ("Atari/tic_tac_toe_3d", "TicTacToe3D"),
    ],
)
def test_a_game_has_one_name_however_it_is_spelled(spelled, game):
    assert find_game(spelled) == game


def test_every_game_for_one_player_is_there():
    from ale_py import roms

    games = atari_games()
    assert len(games) == len(roms.get_all_rom_ids()) - 4
    assert games["SpaceInvaders"] == "space_invaders"
    assert "Combat" not in games  # the emulator would end the process


@pytest.mark.parametrize("name", ["Atari/Combat", "Atari/maze_craze", "Atari/joust-v5", "warlords"])
def test_a_game_for_two_says_so(name):
    with pytest.raises(EnvironmentNotFoundError, match=f"'{name}' needs two players"):
        make_environment(EnvironmentConfig(name)) if "/" in name else find_game(name)
    with pytest.raises(EnvironmentNotFoundError, match=r"Atari/Warlords \(two players\)"):
        find_game("Atari/Warlord")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("atari/pong", r"Did you mean Atari/Pong\?"),
        ("ATARI/space_invaders", r"Did you mean Atari/SpaceInvaders\?"),
        ("atari/Combat", "'Atari/Combat' needs two players"),
        ("atari/breakot", "Close names: Atari/Breakout"),
        ("atari/pong-v5", "Say Atari/Pong"),
        ("ale/pong-v5", "Close names: ALE/Pong-v5"),
    ],
)
def test_other_capitals_before_the_slash_get_a_hint(name, hint):
    with pytest.raises(
        EnvironmentNotFoundError, match=f"no environment is called '{name}'.*{hint}"
    ):
        make_environment(EnvironmentConfig(name))


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (EnvironmentConfig("ALE/SpaceInvaders-v5"), "Atari/SpaceInvaders shows what the DQN"),
        (EnvironmentConfig("ALE/Pong"), "ALE/Pong shows single screens .* Atari/Pong shows"),
    ],
)
def test_bare_screens_get_a_hint(config, expected):
    assert re.search(expected, screens_hint(config))


@pytest.mark.parametrize(
    "config",
    [
        EnvironmentConfig("Atari/Pong"),
        EnvironmentConfig("Hopper-v5"),
        EnvironmentConfig("ALE/Pong-v5", {"obs_type": "ram"}),
        EnvironmentConfig("ALE/Pong-v5", wrappers=[WrapperConfig("AtariPreprocessing")]),
    ],
)
def test_whoever_needs_no_hint_of_screens_gets_none(config):
    assert screens_hint(config) is None


@pytest.mark.parametrize("name", ["Atari/Pong-v5", "Atari/pong-v4"])
def test_a_version_is_refused_because_it_would_mean_other_settings(name):
    with pytest.raises(EnvironmentNotFoundError, match=r"Say Atari/Pong, or ALE/Pong-v5"):
        make_environment(EnvironmentConfig(name))


def test_a_name_like_none_says_how_many_games_there_are():
    with pytest.raises(EnvironmentNotFoundError, match="104 games, from Atari/Adventure"):
        find_game("Atari/12345")


@pytest.mark.parametrize("name", ["ALE/Pong-v5", "Atari/Pong"])
def test_a_missing_package_is_named(monkeypatch, name):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EnvironmentNotFoundError, match=f"{name}' needs .* pip install ale-py"):
        make_environment(EnvironmentConfig(name))
