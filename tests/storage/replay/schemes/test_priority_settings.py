"""Settings of PER and PSER: the paper's windows, the schedule of beta, and what is refused."""

from __future__ import annotations

import dataclasses

import pytest

from storage.errors import ConfigError
from storage.replay.schemes.priority_settings import (
    PRIORITY_PRESETS,
    PrioritySettings,
    SequenceSettings,
)

WINDOWS = {
    0.3: 3, 0.4: 5, 0.5: 6, 0.65: 10, 0.7: 12, 0.8: 20, 0.85: 28, 0.9: 43, 0.95: 89, 0.99: 458,
}  # fmt: skip


@pytest.mark.parametrize(("decay", "reach"), WINDOWS.items())
def test_the_papers_windows(decay: float, reach: int) -> None:
    assert SequenceSettings(decay=decay).reach == reach
    assert decay**reach >= 0.01 > decay ** (reach + 1)


def test_a_window_that_is_given_wins() -> None:
    assert SequenceSettings(decay=0.4, window=17).reach == 17
    assert SequenceSettings(decay=0.9, window=0).reach == 0


@pytest.mark.parametrize(("decay", "reach"), [(0.0, 0), (0.009, 0), (0.01, 1), (0.1, 2)])
def test_the_window_at_exact_powers_and_below(decay: float, reach: int) -> None:
    assert SequenceSettings(decay=decay).reach == reach


def test_beta_rises_linearly_from_the_first_draw() -> None:
    settings = PrioritySettings(beta=0.4, beta_final=1.0, beta_draws=100)
    wanted = {1: 0.4, 51: 0.7, 101: 1.0, 102: 1.0, 10**12: 1.0}
    assert {draw: settings.beta_at(draw) for draw in wanted} == pytest.approx(wanted, rel=1e-12)
    falling = PrioritySettings(beta=1.0, beta_final=0.0, beta_draws=1)
    assert [falling.beta_at(draw) for draw in (1, 2, 3)] == [1.0, 0.0, 0.0]
    assert PrioritySettings().beta_at(10**9) == 0.4


def test_presets() -> None:
    paper = PRIORITY_PRESETS["paper"]
    assert paper == PrioritySettings()
    assert (paper.alpha, paper.beta, paper.beta_final, paper.epsilon) == (0.6, 0.4, 1.0, 1e-5)
    authors = PRIORITY_PRESETS["dopamine"]
    assert (authors.alpha, authors.beta, authors.beta_at(10**6)) == (0.5, 0.5, 0.5)
    assert (authors.error, authors.exponent, authors.epsilon) == ("huber", "priorities", 1e-10)
    best = SequenceSettings()
    assert (best.decay, best.reach, best.eta, best.mode) == (0.4, 5, 0.7, "max")
    assert (best.decay_on_insert, best.stop_at_life_loss) == (False, True)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"alpha": 1.1}, "alpha = 1.1"),
        ({"alpha": float("nan")}, "alpha = nan"),
        ({"alpha": "0.6"}, "alpha = '0.6'"),
        ({"beta": -0.1}, "beta = -0.1"),
        ({"beta_final": True}, "beta_final = True"),
        ({"beta_draws": 0}, "beta_draws = 0"),
        ({"beta_draws": 1.5}, "beta_draws = 1.5"),
        ({"epsilon": -1e-9}, "epsilon = -1e-09"),
        ({"epsilon": float("inf")}, "epsilon = inf"),
        ({"error": "squared"}, "error = 'squared' must be one of absolute, huber"),
        ({"exponent": "both"}, "exponent = 'both'"),
        ({"initial": "zero"}, "initial = 'zero' must be one of max_ever, max_current, current_td"),
        ({"initial_constant": 0.0}, "initial_constant = 0.0"),
        ({"initial_constant": 1e39}, "initial_constant = 1e[+]39"),
        ({"normalise": "all"}, "normalise = 'all'"),
        ({"stratified": 1}, "stratified"),
    ],
)
def test_impossible_priorities_are_refused(given, named) -> None:
    with pytest.raises(ConfigError, match=named):
        PrioritySettings(**given)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"decay": 1.0}, r"decay = 1.0 must lie in \[0, 1\)"),
        ({"decay": -0.1}, "decay = -0.1"),
        ({"decay": float("nan")}, "decay = nan"),
        ({"window": -1}, "window = -1"),
        ({"window": 5.0}, "window = 5.0"),
        ({"window": 2**31}, "window = 2147483648"),
        ({"mode": "sum"}, "mode = 'sum' must be one of max, add"),
        ({"eta": 1.01}, "eta = 1.01"),
        ({"decay_on_insert": None}, "decay_on_insert"),
        ({"stop_at_life_loss": 0}, "stop_at_life_loss"),
    ],
)
def test_impossible_sequences_are_refused(given, named) -> None:
    with pytest.raises(ConfigError, match=named):
        SequenceSettings(**given)


def test_everything_wrong_is_named_at_once() -> None:
    with pytest.raises(ConfigError, match=r"alpha = 2.*epsilon = -1.*error = 'x'"):
        PrioritySettings(alpha=2, epsilon=-1, error="x")


def test_settings_cannot_be_changed_afterwards() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        PrioritySettings().alpha = 1.0
