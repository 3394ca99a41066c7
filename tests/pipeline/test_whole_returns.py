"""Means of returns are of whole episodes, whatever cut the others."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import storage
from pipeline.curve import main as curve
from pipeline.learning_curve import read_learning_curve
from pipeline.train import main
from storage.errors import ConfigError
from tests.pipeline.conftest import small


def test_a_run_within_one_episode_has_no_curve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has trained, or not, all the same: only who asks for a curve is refused."""
    monkeypatch.chdir(tmp_path)
    longer = "--environment.kwargs={longest: 1000000}"
    drift = small("--environment.id=tests.training.zoo.Drift", longer, "--loop.steps=300")
    assert main(["--name=one", *drift]) == 0
    told = "every episode was cut, by the end of the run for instance, so none has a return"
    assert f"\nno curve: {told}\n" in capsys.readouterr().out
    assert not (tmp_path / "runs/one/curve.png").exists()
    with pytest.raises(ConfigError, match=f"runs/one has no curve: {told}"):
        curve(["runs/one"])


def test_an_episode_that_was_cut_while_training_is_in_no_mean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One whose observation is not finite, which the run goes on behind."""
    monkeypatch.chdir(tmp_path)
    nan = small("--environment.id=tests.training.zoo.TurnsNan", "--evaluation.episodes=0")
    main(["--name=nan", *nan, "--loop.nonfinite=end_episode"])
    curve = read_learning_curve(Path("runs/nan"))
    with storage.open("runs/nan/store") as store:
        episodes = store.episodes.to_pandas()
    cut = episodes["ending"] == "cut"
    assert cut[:-1].any()  # by what was shown, besides the one at the run's end
    whole = episodes["return"][~cut]
    assert curve.last(20) == pytest.approx(whole[-20:].mean())
    with open("runs/nan/metrics.csv") as lines:
        last = list(csv.DictReader(lines))[-1]
    assert float(last["episode_return"]) == pytest.approx(whole[-100:].mean())
    assert int(last["episodes"]) == len(episodes) - int(cut.iloc[-1])
