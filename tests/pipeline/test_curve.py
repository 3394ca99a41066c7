from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import storage
from pipeline.curve import main
from pipeline.curve_plot import draw_curve
from pipeline.learning_curve import read_learning_curve
from storage.errors import ConfigError


def test_the_curve_is_the_store_s(run: Path) -> None:
    curve = read_learning_curve(run)
    with storage.open(run / "store") as store:
        table = store.episodes.to_pandas()
    assert curve.steps[-1] == 1100
    assert np.array_equal(curve.returns[curve.whole], table["return"][table["ending"] != "cut"])
    assert len(curve.beta) == len(curve.far_fraction) == len(curve.schedule_steps) > 3
    assert curve.schedule_steps[-1] == 1100


def test_an_episode_that_the_run_s_end_cut_counts_in_no_mean(run: Path) -> None:
    """Its reward so far is no return, and would pull the end of every curve down."""
    curve = read_learning_curve(run)
    with storage.open(run / "store") as store:
        table = store.episodes.to_pandas()
    assert table["ending"].iloc[-1] == "cut"
    assert curve.whole.tolist() == [*[True] * (len(table) - 1), False]
    assert curve.last(20) == pytest.approx(table["return"].iloc[-21:-1].mean())
    steps, means = curve.line(5)
    assert steps[-1] == 1100 - table["length"].iloc[-1]
    assert means[-1] == pytest.approx(curve.last(5))
    assert curve.end == 1100


def test_the_picture_s_marks(run: Path) -> None:
    from matplotlib.figure import Figure

    curve = read_learning_curve(run)
    figure = Figure()
    draw_curve(figure, curve, title="small", window=5)
    lines = [{line.get_label(): line for line in axes.get_lines()} for axes in figure.axes]
    assert "mean of the last 5 episodes" in lines[0]
    assert set(lines[0]["warm-up ends"].get_xdata()) == {200}
    assert set(lines[1]["D"].get_ydata()) == {0.1}
    greedy = lines[0]["greedy evaluation"]
    assert list(greedy.get_xdata()) == [512, 1024, 1100]
    assert all(greedy.get_ydata() > 0)


def test_er_steers_by_no_target(run: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(run, tmp_path / "er")
    config = tmp_path / "er" / "config.yaml"
    config.write_text(config.read_text().replace("rule_2: true", "rule_2: false"))
    assert read_learning_curve(run).far_target == 0.1
    assert read_learning_curve(tmp_path / "er").far_target is None


def test_drawn_again(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "curve.png").unlink()
    main([str(run), "--mean-of=5"])
    assert "mean of the last 5" in capsys.readouterr().out
    assert (run / "curve.png").stat().st_size > 10_000


def test_a_picture_that_cannot_be_written_names_the_option(run: Path, tmp_path: Path) -> None:
    (tmp_path / "curve.png").mkdir()
    for picture in (tmp_path / "curve.png", tmp_path / "none" / "curve.png"):
        with pytest.raises(ConfigError, match=r"curve\.png cannot be written: .* --picture=PNG"):
            main([str(run), f"--picture={picture}"])
    assert [each.name for each in tmp_path.iterdir()] == ["curve.png"]


def test_a_run_that_may_not_be_written_shows_its_curve_and_warns(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that belongs to somebody else, or lies on a read-only file system."""
    import shutil

    for name in ("a", "b"):
        shutil.copytree(run, tmp_path / name)
    for place in (tmp_path / "a/curve.png", tmp_path / "curves.png"):
        place.unlink(missing_ok=True)
        place.mkdir()  # root may write anything else
    with pytest.warns(UserWarning, match=r"curve\.png cannot be written: .*--picture=PNG"):
        assert main([str(tmp_path / "a")]) == 0
    out = capsys.readouterr().out
    assert "last 20 episodes: mean return " in out
    assert "picture:" not in out
    with pytest.warns(UserWarning, match=r"curves\.png cannot be written"):
        assert main([str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    out = capsys.readouterr().out
    assert "| a " in out
    assert "picture:" not in out


def test_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no run"):
        main([str(tmp_path)])
