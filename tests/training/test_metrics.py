from __future__ import annotations

import math

import numpy as np
import pytest

from training.metrics import MetricsFile, RecentReturns, effective_fraction, quantiles


def test_rows_are_appended_and_a_late_key_adds_a_column(tmp_path):
    path = tmp_path / "run" / "metrics.csv"
    log = MetricsFile(path)
    log.log_metrics({"beta": 0.25}, step=64)
    log.log_metrics({"beta": 0.1, "loss": 1 / 3}, step=128)
    log.log_metrics({"loss": 2.0}, step=192)
    assert path.read_text().splitlines() == [
        "steps,beta,loss",
        "64,0.25,",
        f"128,0.1,{1 / 3!r}",
        "192,,2.0",
    ]


def test_a_reopened_file_goes_on_after_the_rows_it_keeps(tmp_path):
    path = tmp_path / "metrics.csv"
    log = MetricsFile(path)
    for step in (64, 128, 192):
        log.log_metrics({"loss": float(step)}, step=step)
    again = MetricsFile(path)
    again.rewind(128)
    again.log_metrics({"loss": -1.0}, step=160)
    again.rewind(1000)
    assert path.read_text().splitlines()[1:] == ["64,64.0", "128,128.0", "160,-1.0"]


def test_a_file_from_before_the_steps_column_goes_on(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("environment_steps,beta\n64,0.5\n128,0.4\n192,0.3\n")
    log = MetricsFile(path)
    log.rewind(128)
    log.log_metrics({"environment_steps": 160, "beta": 0.2}, step=160)
    log.rewind(128)
    log.log_metrics({"environment_steps": 144, "beta": 0.1}, step=144)
    assert path.read_text().splitlines() == [
        "environment_steps,beta,steps",
        "64,0.5,",
        "128,0.4,",
        "144,0.1,144",
    ]


def test_recent_returns_keep_the_last_hundred_and_survive_their_state():
    recent = RecentReturns()
    assert math.isnan(recent.mean)
    for value in range(150):
        recent.add(float(value))
    again = RecentReturns.restore(recent.state())
    assert (again.mean, again.count) == (99.5, 150)
    again.add(1000.0)
    assert again.mean == pytest.approx(99.5 + 9.5)


def test_effective_fraction_and_quantiles():
    assert effective_fraction(np.ones(8, np.float32)) == 1.0
    assert effective_fraction(np.array([1.0, 0, 0, 0])) == 0.25
    assert effective_fraction(np.zeros(3)) == 0.0
    assert effective_fraction(np.array([2.0, 1.0])) == pytest.approx(9 / 10)
    assert quantiles("r", np.arange(101.0)) == {"r_q05": 5.0, "r_q50": 50.0, "r_q95": 95.0}
