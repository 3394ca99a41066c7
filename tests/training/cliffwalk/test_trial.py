from __future__ import annotations

import numpy as np
import pytest

import storage
from storage.errors import ConfigError
from training.cliffwalk.sampler import Sampler
from training.cliffwalk.trial import Trial, check_interval


def medians(store: storage.Store, sampler: Sampler, seeds: int, **settings) -> tuple[float, float]:
    """Median updates, in all and after the first goal draw."""
    n = store.env_spec.kwargs["n"]
    outcomes = [Trial(n, sampler, seed=seed, **settings).play(store) for seed in range(seeds)]
    assert all(outcome.converged for outcome in outcomes)
    assert all(outcome.mean_squared_error < 1e-3 for outcome in outcomes)
    return (
        float(np.median([outcome.updates for outcome in outcomes])),
        float(np.median([outcome.updates_after_goal for outcome in outcomes])),
    )


def test_uniform_replay_needs_what_the_reference_needs(memories: dict[int, storage.Store]) -> None:
    assert medians(memories[4], Sampler("uniform"), 300, start="normal")[0] == pytest.approx(
        333, rel=0.15
    )


def test_the_same_seed_gives_the_same_trial(memories: dict[int, storage.Store]) -> None:
    outcomes = [Trial(4, Sampler("uniform"), seed=seed).play(memories[4]) for seed in (5, 5, 6)]
    assert outcomes[0] == outcomes[1]
    assert outcomes[0].curve != outcomes[2].curve


def test_a_trial_is_given_up_at_its_limit(memories: dict[int, storage.Store]) -> None:
    outcome = Trial(4, Sampler("uniform"), limit=7).play(memories[4])
    assert (outcome.updates, outcome.converged) == (7, False)
    assert outcome.mean_squared_error > 1e-3


def test_the_goal_s_draw_is_when_the_error_first_changes(
    memories: dict[int, storage.Store],
) -> None:
    """From zero, no update before it changes anything, and it brings Q to 1/4."""
    outcome = Trial(8, Sampler("uniform"), seed=1).play(memories[8])
    first = outcome.curve[0][1]
    assert {error for updates, error in outcome.curve if updates < outcome.goal_update} == {first}
    after = next(error for updates, error in outcome.curve if updates >= outcome.goal_update)
    assert first - after == pytest.approx((1 - 0.75**2) / 16)
    assert outcome.updates_after_goal == outcome.updates - outcome.goal_update


def test_a_curve_is_thin_and_ends_where_the_trial_ends(memories: dict[int, storage.Store]) -> None:
    outcome = Trial(8, Sampler("uniform"), seed=1).play(memories[8])
    assert outcome.curve[-1] == (outcome.updates, outcome.mean_squared_error)
    assert len(outcome.curve) < 1500 < outcome.updates
    assert all(
        left[0] <= right[0] for left, right in zip(outcome.curve, outcome.curve[1:], strict=False)
    )


@pytest.mark.parametrize(
    ("n", "sampler", "updates"),
    [(2, "per", 1), (10, "per", 1), (11, "per", 64), (16, "uniform", 64), (16, "oracle", 1)],
)
def test_the_error_is_looked_at_more_rarely_above_ten(n: int, sampler: str, updates: int) -> None:
    assert check_interval(n, sampler) == updates


def test_another_memory_is_refused(memories: dict[int, storage.Store]) -> None:
    with pytest.raises(ConfigError, match="no memory of Blind Cliffwalk with n = 8"):
        Trial(8, Sampler("uniform")).play(memories[4])
