from __future__ import annotations

import pytest

from pipeline.atari_hints import give_atari_hints
from training.config import EnvironmentConfig, EvaluationConfig, RunConfig, WrapperConfig


@pytest.mark.parametrize(
    ("environment", "evaluation", "expected"),
    [
        (EnvironmentConfig("ALE/Pong-v5"), EvaluationConfig(), "Atari/Pong shows what the DQN"),
        (
            EnvironmentConfig("Atari/Pong"),
            EvaluationConfig(),
            "5 greedy episodes of Atari/P",
        ),
        (EnvironmentConfig("Atari/Pong"), EvaluationConfig(episodes=1), ""),
        (EnvironmentConfig("Atari/Pong", {"sticky": 0.25}), EvaluationConfig(), ""),
        (
            EnvironmentConfig("Atari/Pong"),
            EvaluationConfig(environment_kwargs={"noop_max": 30}),
            "",
        ),
        (
            EnvironmentConfig("Atari/Pong", wrappers=[WrapperConfig("TimeLimit")]),
            EvaluationConfig(),
            "",
        ),
        (EnvironmentConfig("Hopper-v5"), EvaluationConfig(), ""),
    ],
)
def test_surprises_are_told(environment, evaluation, expected, capsys):
    give_atari_hints(RunConfig(environment, evaluation=evaluation))
    said = capsys.readouterr().err
    assert expected in said
    assert said.count("sharpwave: note:") == bool(expected)
