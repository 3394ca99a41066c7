from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import storage
from storage.errors import ConfigError
from training.cliffwalk.memory import fill_store
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


@pytest.mark.parametrize(
    ("sampler", "updates"),
    [
        (Sampler("pser-max"), 206),
        (Sampler("pser-max", eta=0.0), 206),
        (Sampler("pser-max", decay=0.8), 239),
        (Sampler("pser-add"), 317),
        (Sampler("pser-max", alpha=0.5), 334),
        (Sampler("pser-add", alpha=0.5), 408),
    ],
    ids=lambda value: getattr(value, "label", None),
)
def test_updates_after_the_goal(
    memories: dict[int, storage.Store], sampler: Sampler, updates: int
) -> None:
    """Medians of the reference, n = 8."""
    assert medians(memories[8], sampler, 40)[1] == pytest.approx(updates, rel=0.1)


@pytest.mark.soak
@pytest.mark.parametrize("n", [8, 12])
def test_updates_after_the_goal_of_many_seeds(tmp_path: Path, n: int) -> None:
    """Medians of the reference over 400 seeds; those of PER are low by 7 % (docs/cliffwalk.md)."""
    fill_store(tmp_path / "s", n)
    column = {8: 0, 12: 1}[n]
    expected = {
        Sampler("per"): (642, 7098),
        Sampler("pser-max"): (206, 460),
        Sampler("pser-add"): (317, 818),
        Sampler("pser-max", eta=0.0): (206, 458),
    }
    with storage.open(tmp_path / "s") as store:
        for sampler, updates in expected.items():
            found = medians(store, sampler, 400)[1]
            allowed = 0.15 if sampler.name == "per" else 0.1
            assert found == pytest.approx(updates[column], rel=allowed), sampler.label


def test_per_needs_more_than_pser_and_uniform_more_than_per(
    memories: dict[int, storage.Store],
) -> None:
    store = memories[8]
    per = medians(store, Sampler("per"), 60)[1]
    assert per == pytest.approx(642, rel=0.2)
    assert medians(store, Sampler("uniform"), 8)[1] > 7 * per


def test_maximum_initial_priorities_make_pser_slower_than_per(
    memories: dict[int, storage.Store],
) -> None:
    per = medians(memories[8], Sampler("per", "max"), 40)[0]
    pser = medians(memories[8], Sampler("pser-max", "max"), 12)[0]
    assert per == pytest.approx(849, rel=0.15)
    assert pser == pytest.approx(5368, rel=0.1)


@pytest.mark.parametrize(
    ("sampler", "draws"),
    [
        (Sampler("per", epsilon=1e-9), 30.5),
        (Sampler("pser-max", epsilon=1e-9), 13.55),
        (Sampler("pser-max", epsilon=1e-9, eta=0.0), 7.28),
        (Sampler("pser-max", epsilon=1e-9, eta=1.0), 23.7),
    ],
    ids=lambda value: getattr(value, "label", None),
)
def test_draws_with_learning_rate_one(
    memories: dict[int, storage.Store], sampler: Sampler, draws: float
) -> None:
    """The theorem's setting with the error before the update: the reference's means, n = 4."""
    outcomes = [Trial(4, sampler, seed=seed, step=1.0).play(memories[4]) for seed in range(300)]
    found = [outcome.updates_after_goal + 1 for outcome in outcomes]
    assert np.mean(found) == pytest.approx(draws, rel=0.06)


def test_uniform_replay_needs_what_the_reference_needs(memories: dict[int, storage.Store]) -> None:
    found = medians(memories[4], Sampler("uniform"), 200, start="normal")[0]
    assert found == pytest.approx(333, rel=0.15)


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
