from __future__ import annotations

import pytest

from storage.errors import ConfigError
from training.cliffwalk.sampler import SAMPLERS, Sampler


@pytest.mark.parametrize(
    ("sampler", "label"),
    [
        (Sampler("uniform"), "uniform"),
        (Sampler("oracle"), "oracle"),
        (Sampler("per"), "PER, from 1e-06"),
        (Sampler("per", "max", alpha=0.5), "PER, α 0.5, from max"),
        (Sampler("per", "max", epsilon=1e-3), "PER, from max, ε 0.001"),
        (Sampler("pser-max"), "PSER MAX, ρ 0.4, W 5, η 0.7, from 1e-06"),
        (Sampler("pser-add", eta=0.0), "PSER ADD, ρ 0.4, W 5, η 0, from 1e-06"),
    ],
)
def test_labels(sampler: Sampler, label: str) -> None:
    assert sampler.label == label


@pytest.mark.parametrize(("decay", "window"), [(0.4, 5), (0.8, 20), (0.95, 89)])
def test_windows_follow_from_decays(decay: float, window: int) -> None:
    assert Sampler("pser-max", decay=decay).window == window
    assert Sampler("pser-max", decay=decay).sequences().reach == window


def test_initial_priorities_are_epsilon_or_the_maximum() -> None:
    low = Sampler("per", epsilon=1e-3).priorities()
    assert (low.initial, low.initial_constant, low.epsilon) == ("constant", 1e-3, 1e-3)
    high = Sampler("per", "max").priorities()
    assert (high.initial, high.initial_constant) == ("max_ever", 1.0)


def test_names_and_modes() -> None:
    assert [Sampler(name).prioritized for name in SAMPLERS] == [False, False, True, True, True]
    assert [Sampler(name).sequential for name in SAMPLERS] == [False, False, False, True, True]
    assert [Sampler(name).sequences().mode for name in SAMPLERS[3:]] == ["max", "add"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"name": "pser"}, "no sampler 'pser'; choose from uniform, oracle, per, pser-max"),
        ({"name": "per", "initial": "min"}, "initial = 'min' must be one of epsilon, max"),
        ({"name": "per", "alpha": 1.5}, "alpha = 1.5"),
        ({"name": "per", "epsilon": 0.0}, "initial_constant = 0.0"),
        ({"name": "pser-max", "decay": 1.0}, "decay = 1.0"),
        ({"name": "pser-max", "eta": -0.1}, "eta = -0.1"),
    ],
)
def test_impossible_settings_are_refused(values: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Sampler(**values)
