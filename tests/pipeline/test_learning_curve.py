"""Curves of runs that learn from a store, and of metrics of other versions."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest

from pipeline.curve import main
from pipeline.learning_curve import read_learning_curve
from storage.errors import ConfigError


def copied(run: Path, to: Path, *changes: tuple[str, str]) -> Path:
    """A copy of `run` with each `changes` made to its settings."""
    shutil.copytree(run, to)
    text = (to / "config.yaml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (to / "config.yaml").write_text(text)
    return to


def test_evaluations_by_updates(compared: Path) -> None:
    curve = read_learning_curve(compared / "offline")
    with (compared / "offline/metrics.csv").open(newline="") as file:
        lines = [line for line in csv.DictReader(file) if line["evaluation_return"]]
    assert curve.greedy_steps.tolist() == [192, 384, 576, 600]
    assert curve.greedy_returns.tolist() == [float(line["evaluation_return"]) for line in lines]
    assert curve.schedule_steps[-1] == 600
    assert (curve.unit, curve.missing, curve.warmup) == ("updates", "", None)
    assert curve.last(20) == curve.greedy_returns[-1]
    assert len(curve.returns) == 0


def test_shown_and_drawn(
    compared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "offline.png"
    main([str(compared / "offline"), f"--picture={picture}"])
    out = capsys.readouterr().out
    last = read_learning_curve(compared / "offline").greedy_returns[-1]
    assert out.startswith("return of greedy evaluations\n")
    assert "updates                                   600\n" in out
    assert f"last evaluation: mean return {last:,.1f}    picture: {picture}" in out
    assert picture.stat().st_size > 10_000


def test_the_picture_of_evaluations(compared: Path) -> None:
    from matplotlib.figure import Figure

    from pipeline.curve_plot import draw_curve

    figure = Figure()
    curve = read_learning_curve(compared / "offline")
    draw_curve(figure, curve, title="offline")
    above, below = figure.axes
    (line,) = above.get_lines()
    assert np.array_equal(line.get_xdata(), curve.greedy_steps)
    assert np.array_equal(line.get_ydata(), curve.greedy_returns)
    assert below.get_xlabel() == "updates"


def test_metrics_that_have_no_column_of_steps_yet(compared: Path, tmp_path: Path) -> None:
    older = copied(compared / "offline", tmp_path / "older")
    text = (older / "metrics.csv").read_text()
    (older / "metrics.csv").write_text(text.replace("steps,", "environment_steps,", 1))
    assert read_learning_curve(older).greedy_steps.tolist() == [192, 384, 576, 600]


def test_why_there_is_nothing_to_draw(compared: Path, tmp_path: Path) -> None:
    young = copied(compared / "offline", tmp_path / "young")
    (young / "metrics.csv").unlink()
    with pytest.raises(ConfigError, match=r"young has no curve: .* no evaluation has been played"):
        main([str(young)])
    blind = copied(young, tmp_path / "blind", ("episodes: 2", "episodes: 0"))
    with pytest.raises(ConfigError, match=r"blind has no curve: .* evaluation\.episodes 0"):
        main([str(blind)])


def test_a_damaged_line_is_named(compared: Path, tmp_path: Path) -> None:
    run = copied(compared / "offline", tmp_path / "damaged")
    with (run / "metrics.csv").open("a") as file:
        file.write(",".join(["x"] * 30) + "\n")
    with pytest.raises(ConfigError, match=r"metrics\.csv, line \d+: 'x' is no number"):
        read_learning_curve(run)


def test_a_store_that_is_gone_is_named(compared: Path, tmp_path: Path) -> None:
    run = copied(compared / "small", tmp_path / "bare")
    shutil.rmtree(run / "store")
    with pytest.raises(ConfigError, match=r"bare has no curve: .*bare/store is not there"):
        main([str(run)])
