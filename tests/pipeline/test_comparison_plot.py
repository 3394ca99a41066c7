"""Panels, colours and means of several runs' picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from pipeline.comparison import compare
from pipeline.comparison_plot import draw_comparison, mean_line, save_comparison
from pipeline.run_folder import RunFolder


def drawn(folder: Path, *names: str) -> Figure:
    figure = Figure()
    draw_comparison(figure, compare([RunFolder(folder / name) for name in names]))
    return figure


def test_seeds_are_thin_and_their_mean_is_thick(compared: Path) -> None:
    (axes,) = drawn(compared, "small", "second", "eager").axes
    lines = axes.get_lines()
    named = {line.get_label(): line for line in lines if not line.get_label().startswith("_")}
    assert list(named) == ["engine=fused, 2 seeds", "engine=eager, 1 seed"]
    fused, eager = named.values()
    thin = [line for line in lines if line not in (fused, eager)]
    assert [line.get_color() for line in thin] == [fused.get_color()] * 2
    assert fused.get_color() != eager.get_color()
    assert all(line.get_linewidth() < fused.get_linewidth() for line in thin)
    seeds = [(line.get_xdata(), line.get_ydata()) for line in thin]
    assert np.array_equal(fused.get_ydata(), mean_line(seeds)[1])
    assert axes.get_title(loc="left") == "InvertedPendulum-v5"


def test_runs_that_do_not_act_have_a_panel_and_a_unit_of_their_own(compared: Path) -> None:
    acting, offline = drawn(compared, "small", "offline").axes
    assert (acting.get_xlabel(), offline.get_xlabel()) == ("environment steps", "updates")
    assert offline.get_title(loc="left") == "InvertedPendulum-v5, from a store"
    assert "greedy" in offline.get_ylabel()
    (line,) = offline.get_lines()
    assert list(line.get_xdata()) == [192, 384, 576, 600]


def test_the_mean_covers_the_steps_that_all_cover() -> None:
    one = np.array([1.0, 3.0, 5.0]), np.array([0.0, 2.0, 4.0])
    other = np.array([2.0, 4.0]), np.array([10.0, 20.0])
    steps, mean = mean_line([one, other])
    assert steps.tolist() == [2, 3, 4]
    assert mean.tolist() == [(1 + 10) / 2, (2 + 15) / 2, (3 + 20) / 2]


def test_the_mean_of_curves_without_common_steps_is_empty() -> None:
    one, other = (np.array([1.0]), np.array([5.0])), (np.array([2.0]), np.array([7.0]))
    steps, mean = mean_line([one, other])
    assert len(steps) == len(mean) == 0


def test_panels_are_side_by_side(compared: Path, tmp_path: Path) -> None:
    from matplotlib.image import imread

    one, two = tmp_path / "one.png", tmp_path / "two.png"
    save_comparison(compare([RunFolder(compared / "small")] * 2), one)
    save_comparison(compare([RunFolder(compared / name) for name in ("small", "offline")]), two)
    assert imread(two).shape[1] > 1.2 * imread(one).shape[1]
