from __future__ import annotations

from pathlib import Path

import numpy as np

from pipeline.cliffwalk.plot import median_curve, save_errors
from pipeline.cliffwalk.record import Record
from training.cliffwalk.sampler import Sampler
from training.cliffwalk.trial import Outcome, Trial


def record(curve: list[tuple[int, float]], goal: int = 1, seed: int = 0) -> Record:
    trial = Trial(4, Sampler("per"), seed=seed)
    return Record(trial, Outcome(curve[-1][0], goal, True, curve[-1][1], curve), 0.0)


def test_an_error_holds_until_the_next_look() -> None:
    points, errors = median_curve([record([(0, 0.5), (10, 0.25), (100, 0.125)])], False)
    assert (points[0], points[-1]) == (1.0, 100.0)
    assert set(errors[points < 10]) == {0.5}
    assert set(errors[(points >= 10) & (points < 100)]) == {0.25}
    assert errors[-1] == 0.125


def test_updates_may_be_counted_from_the_goal() -> None:
    members = [
        record([(0, 0.5), (50 + 10 * k, 0.25), (60 + 10 * k, 0.1)], 50 + 10 * k) for k in (0, 4)
    ]
    points, errors = median_curve(members, True)
    assert points[-1] == 10.0
    assert set(errors[:-1]) == {0.25}
    assert errors[-1] == 0.1


def test_a_median_is_taken_at_each_point() -> None:
    """Trials end at 10, 100 and 1,000: the middle one is the second to fall."""
    members = [record([(0, 1.0), (10**k, 0.1 / k)], seed=k) for k in (1, 2, 3)]
    points, errors = median_curve(members, False)
    assert np.array_equal(errors[:-1], np.where(points < 100, 1.0, 0.1)[:-1])
    assert errors[-1] == 0.05


def test_a_curve_ends_where_the_median_is_solved() -> None:
    members = [record([(0, 1.0), (10**k, 0.0009 / k)], seed=k) for k in (1, 2, 3)]
    points, errors = median_curve(members, False)
    assert errors[-1] == 0.0009
    assert set(errors[:-1]) == {1.0}
    assert 100 <= points[-1] < 110


def test_without_curves_there_is_no_picture(tmp_path: Path) -> None:
    bare = record([(0, 1.0), (9, 0.1)]).without_curve()
    assert save_errors([bare], tmp_path / "mse.png") is None
    assert not (tmp_path / "mse.png").exists()
