from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from pipeline.protocol.bin_plot import draw_bins
from pipeline.protocol.bins import TrainingReturns, binned


def method(environment: str, name: str, returns: list[list[float]]) -> tuple[Any, Any]:
    runs = [TrainingReturns(np.arange(1, 7) * 10, np.array(own), 20) for own in returns]
    return SimpleNamespace(environment=environment, name=name, runs=runs), binned(runs, 20)


def test_means_and_bands_behind_the_warm_up() -> None:
    figure = Figure()
    two = method("Hopper-v5", "DDPG, ER", [[0, 0, 1, 3, 5, 7], [0, 0, 3, 5, 7, 9]])
    one = method("Hopper-v5", "DDPG, ReF-ER", [[9, 9, 1, 1, 2, 2]])
    other = method("Ant-v5", "DDPG, ReF-ER", [[9, 9, 4, 4, 5, 5]])
    draw_bins(figure, [two, one, other])
    hopper, ant = figure.axes
    assert [axes.get_title(loc="left") for axes in (hopper, ant)] == ["Hopper-v5", "Ant-v5"]
    first, second = hopper.get_lines()
    assert np.asarray(first.get_xdata()).tolist() == [10, 30]  # middles of 1–20 and 21–40
    assert np.asarray(first.get_ydata()).tolist() == [3, 7]
    assert first.get_label() == "DDPG, ER (2)"
    (again,) = ant.get_lines()
    assert again.get_color() == second.get_color() != first.get_color()
    heights = hopper.collections[0].get_paths()[0].vertices[:, 1]
    assert np.isclose([heights.min(), heights.max()], [2.4, 7.6]).all()  # 20 % and 80 %


def test_bins_that_not_all_runs_have_are_dashed() -> None:
    """Of bins 1 to 5 the second lacks a run, no episode is in the third, the last is partial."""
    nan = np.nan
    one = TrainingReturns(np.arange(1, 7) * 10, np.array([1, 2, nan, 4, 5, 6.0]), 0)
    two = TrainingReturns(np.arange(1, 6) * 10, np.array([3, nan, nan, 4, 5.0]), 0)
    runs = [one, two]
    figure = Figure()
    told: Any = SimpleNamespace(environment="Hopper-v5", name="DDPG, ER", runs=runs)
    draw_bins(figure, [(told, binned(runs, 10))])
    (axes,) = figure.axes
    solid, dashed = axes.get_lines()
    assert (solid.get_linestyle(), dashed.get_linestyle()) == ("-", "--")
    assert solid.get_color() == dashed.get_color()
    np.testing.assert_equal(solid.get_ydata(), [2, nan, nan, 4, 5, nan])
    assert np.asarray(dashed.get_xdata()).tolist() == [5, 15, 35, 45, 55]
    np.testing.assert_equal(dashed.get_ydata(), [2, 2, 4, 5, 6])
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["DDPG, ER (2)"]
    assert "dashed: bins that not all seeds have" in legend.get_title().get_text()


def test_a_long_name_goes_on_in_the_next_line_of_the_key() -> None:
    name = "DQN, ER, PSER, replay.priorities.beta=0.5, replay.priorities.beta_final=0.5"
    figure = Figure()
    draw_bins(figure, [method("Atari/Pong", name, [[0, 0, 1, 3, 5, 7]])])
    legend = figure.axes[0].get_legend()
    assert legend is not None
    lines = legend.get_texts()[0].get_text().splitlines()
    assert " ".join(lines) == f"{name} (1)"
    assert max(map(len, lines)) <= 56
