from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from pipeline.cliffwalk.plot import mark_states, median_curve, save_errors
from pipeline.cliffwalk.record import Record
from storage.errors import ConfigError
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


@pytest.mark.parametrize(("sizes", "marks"), [([8], ["8"]), ([2, 3, 4, 3], ["2", "3", "4"])])
def test_only_whole_numbers_of_states_are_marked(sizes: list[int], marks: list[str]) -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.plot(sizes, [1.0] * len(sizes))
    mark_states(axes, sizes)
    assert [f"{at:g}" for at in axes.get_xticks()] == marks


def test_a_line_that_covers_another_is_thinner(tmp_path: Path, drawn: list[Figure]) -> None:
    """η 0.7 and 0 give the same curve: the first keeps its edges."""
    curve = [(0, 0.5), (10, 0.25), (100, 0.0001)]
    samplers = [Sampler("pser-max", eta=eta) for eta in (0.7, 0.0)]
    records = [
        Record(Trial(4, sampler), Outcome(100, 1, True, 0.0001, curve), 0.0) for sampler in samplers
    ]
    save_errors(records, tmp_path / "mse.png")
    below, above = drawn[0].axes[0].get_lines()[:2]
    assert below.get_label() == samplers[0].label
    assert below.get_color() != above.get_color()
    assert below.get_linewidth() > 2 * above.get_linewidth()
    assert below.get_zorder() < above.get_zorder()


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Figures in the order in which they were saved."""
    kept: list[Figure] = []
    save = Figure.savefig

    def keep(figure: Figure, *args: Any, **kwargs: Any) -> None:
        kept.append(figure)
        save(figure, *args, **kwargs)

    monkeypatch.setattr(Figure, "savefig", keep)
    return kept


def test_without_curves_there_is_no_picture(tmp_path: Path) -> None:
    bare = record([(0, 1.0), (9, 0.1)]).without_curve()
    assert save_errors([bare], tmp_path / "mse.png") is None
    assert not (tmp_path / "mse.png").exists()


def test_a_picture_that_cannot_be_written_names_the_study_s_option(tmp_path: Path) -> None:
    (tmp_path / "mse.png").mkdir()
    with pytest.raises(ConfigError, match=r"mse\.png cannot be written: .* place by --folder$"):
        save_errors([record([(0, 1.0), (9, 0.1)])], tmp_path / "mse.png")
