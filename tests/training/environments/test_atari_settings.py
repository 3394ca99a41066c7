from __future__ import annotations

import re

import pytest

from storage.errors import ConfigError
from training.environments.atari import atari_games
from training.environments.atari_settings import MOST_NOOPS, AtariSettings, atari_settings
from training.environments.environment import make_environment
from training.environments.environment_config import EnvironmentConfig


def test_the_defaults_are_those_of_the_papers_code():
    assert atari_settings({}) == AtariSettings(4, 4, 84, 0, 0.0, False, 108_000)
    assert AtariSettings().max_steps == 27_000


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"frame_skip": 0}, "environment.kwargs.frame_skip is 0; it must be a whole number from 1"),
        ({"frame_skip": 4.0}, "environment.kwargs.frame_skip is 4.0"),
        ({"frame_skip": True}, "environment.kwargs.frame_skip is True"),
        ({"frame_skip": 2**31}, "environment.kwargs.frame_skip is 2147483648"),
        ({"stack": 0}, "environment.kwargs.stack is 0; it must be a whole number from 1 to 256"),
        ({"screen": 0}, "environment.kwargs.screen is 0"),
        ({"screen": 10**6}, "environment.kwargs.screen is 1000000"),
        ({"noop_max": -1}, "environment.kwargs.noop_max is -1; it must be a whole number from 0"),
        (
            {"noop_max": 61},
            "noop_max is 61; it must be a whole number from 0 to 60: papers use 30, and what a",
        ),
        ({"max_frames": 0}, "environment.kwargs.max_frames is 0"),
        ({"max_frames": None}, "environment.kwargs.max_frames is None"),
        ({"sticky": 1.0}, "environment.kwargs.sticky is 1.0; it must be a probability"),
        ({"sticky": -0.1}, "environment.kwargs.sticky is -0.1"),
        ({"sticky": float("nan")}, "environment.kwargs.sticky is nan"),
        ({"sticky": "0.25"}, "environment.kwargs.sticky is '0.25'"),
        ({"sticky": True}, "environment.kwargs.sticky is True"),
        ({"full_actions": 1}, "environment.kwargs.full_actions is 1; it must be true or false"),
        ({"noops": 30}, "no setting environment.kwargs.noops; did you mean noop_max?"),
        ({"xyz": 1}, "no setting environment.kwargs.xyz. Settings here: frame_skip, stack, screen"),
    ],
)
def test_what_the_emulator_would_hang_on_or_ignore_is_refused_by_name(kwargs, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        make_environment(EnvironmentConfig("Atari/Pong", kwargs))


def test_hardly_any_game_gives_points_or_takes_a_life_in_the_longest_no_op_start():
    """The reason for the limit of noop_max: points meanwhile are in no score."""
    from ale_py import Action, ALEInterface, roms

    eventful = {}
    for name, rom in atari_games().items():
        emulator = ALEInterface()
        emulator.setInt("random_seed", 1)
        emulator.loadROM(roms.get_rom_path(rom))
        emulator.reset_game()
        lives = emulator.lives()
        points = [emulator.act(Action.NOOP) for _ in range(MOST_NOOPS)]
        assert emulator.lives() >= lives, name
        assert not emulator.game_over(), name
        if any(points):
            eventful[name] = sum(points[:30])
    assert eventful == {"Entombed": 1, "Skiing": -50}


@pytest.mark.parametrize(("frames", "skip", "steps"), [(100, 4, 25), (101, 4, 26), (7, 10, 1)])
def test_a_last_step_may_be_a_part_of_one(frames, skip, steps):
    assert AtariSettings(frame_skip=skip, max_frames=frames).max_steps == steps
