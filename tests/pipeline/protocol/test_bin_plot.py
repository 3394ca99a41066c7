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
