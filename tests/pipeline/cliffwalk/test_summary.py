from __future__ import annotations

import math

import numpy as np
import pytest

from pipeline.cliffwalk.record import Record
from pipeline.cliffwalk.summary import Spread, spread, summarize
from training.cliffwalk.sampler import Sampler
from training.cliffwalk.trial import Outcome, Trial


def record(updates: int, converged: bool = True, goal: int = 1, **trial) -> Record:
    outcome = Outcome(updates, goal, converged, 0.0, [])
    return Record(Trial(trial.pop("n", 4), Sampler(**trial.pop("sampler")), **trial), outcome, 0.0)


@pytest.mark.parametrize(
    ("count", "first"),
    [(1, 1), (2, 1), (5, 1), (6, 1), (8, 1), (9, 2), (10, 2), (20, 6), (40, 14), (200, 86)],
)
def test_ranks_of_the_interval(count: int, first: int) -> None:
    """The usual table of order statistics: of 10 values the 2nd and 9th, of 200 the 86th."""
    found = spread(list(range(count, 0, -1)))
    assert (found.low, found.high) == (first, count + 1 - first)
    assert found.median == (count + 1) / 2


def test_the_interval_covers_the_median_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(2000):
        found = spread(rng.exponential(size=25).tolist())
        covered += found.low <= math.log(2) <= found.high
    assert 0.95 <= covered / 2000 <= 0.97


def test_given_up_trials_count_as_infinite() -> None:
    per = {"name": "per"}
    records = [record(10 * (seed + 1), seed < 2, sampler=per, seed=seed) for seed in range(3)]
    (summary,) = summarize(records)
    assert (summary.trials, summary.converged) == (3, 2)
    assert summary.updates == Spread(20, 10, math.inf)
    assert summary.updates_after_goal == Spread(19, 9, math.inf)


def test_groups_differ_by_more_than_their_seed() -> None:
    per, pser = {"name": "per"}, {"name": "pser-max"}
    records = [
        record(8, sampler=per, n=8),
        record(1, sampler=per, seed=0),
        record(3, sampler=per, seed=1),
        record(5, sampler=per, learner="linear"),
        record(6, sampler=per, start="normal"),
        record(7, sampler=pser),
        record(9, sampler=pser | {"eta": 0.0}),
    ]
    found = summarize(records)
    assert [(each.label, each.n, each.updates.median) for each in found] == [
        ("PER, from 1e-06", 4, 2),
        ("PER, from 1e-06", 8, 8),
        ("PER, from 1e-06, linear", 4, 5),
        ("PER, from 1e-06, N(0, 0.1)", 4, 6),
        ("PSER MAX, ρ 0.4, W 5, η 0.7, from 1e-06", 4, 7),
        ("PSER MAX, ρ 0.4, W 5, η 0, from 1e-06", 4, 9),
    ]
