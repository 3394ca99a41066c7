"""The view's trials against their plain twins: the same distribution of updates."""

from __future__ import annotations

import numpy as np
import pytest

import storage
from tests.training.cliffwalk.naive_trial import NaiveTrial
from training.cliffwalk.sampler import Sampler
from training.cliffwalk.trial import Trial

SEEDS = 150


@pytest.mark.parametrize(
    "sampler",
    [
        Sampler("uniform"),
        Sampler("per"),
        Sampler("per", "max", alpha=0.5),
        Sampler("pser-max"),
        Sampler("pser-max", alpha=0.5, decay=0.8, eta=0.3),
        Sampler("pser-max", "max", eta=0.0),
        Sampler("pser-add"),
        Sampler("pser-add", "max"),
    ],
    ids=lambda sampler: sampler.label,
)
def test_means_agree(memories: dict[int, storage.Store], sampler: Sampler) -> None:
    trials = [Trial(4, sampler, seed=seed) for seed in range(SEEDS)]
    found = np.array([trial.play(memories[4]).updates_after_goal for trial in trials])
    naive = np.array([NaiveTrial(4, sampler, seed).updates_after_goal() for seed in range(SEEDS)])
    error = np.sqrt((found.var(ddof=1) + naive.var(ddof=1)) / SEEDS)
    assert abs(found.mean() - naive.mean()) <= 3.5 * error
    assert error < 0.06 * naive.mean()
