from __future__ import annotations

import math
import os
from contextlib import suppress

import numpy as np
import pytest

from storage.errors import DiskFullError
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


WHOLE = b"steps,beta\r\n64,0.5\r\n128,0.25\r\n"


@pytest.mark.parametrize(
    "torn", [b"1", b"192,", b"192,0.125", b"192\r\n", b"\0\0\0\0", b"192,0.1,2\r\n"]
)
def test_a_torn_last_row_is_dropped(tmp_path, torn):
    path = tmp_path / "metrics.csv"
    path.write_bytes(WHOLE + torn)
    log = MetricsFile(path)
    log.rewind(1000)
    log.log_metrics({"beta": 0.0625}, step=256)
    assert path.read_bytes() == WHOLE + b"256,0.0625\r\n"
    assert [each.name for each in tmp_path.iterdir()] == ["metrics.csv"]


def test_a_torn_header_is_no_header(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_bytes(b"steps,be")
    log = MetricsFile(path)
    log.rewind(0)
    log.log_metrics({"beta": 0.5}, step=64)
    assert path.read_bytes() == b"steps,beta\r\n64,0.5\r\n"


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe" + WHOLE,
        WHOLE + b"192,\0\r\n",
        WHOLE + b"nonsense,0.1\r\n",
        WHOLE + b",0.1\r\n",
        WHOLE + b"192,x\r\n",
        WHOLE + b"9" * 5000 + b",0.1\r\n",
        WHOLE + b"192\r\n256,0.1\r\n",
        b"something,else\r\n1,2\r\n",
        None,
    ],
)
def test_a_damaged_file_is_set_aside_and_stops_nothing(tmp_path, content):
    path = tmp_path / "metrics.csv"
    path.mkdir() if content is None else path.write_bytes(content)
    log = MetricsFile(path)
    with pytest.warns(UserWarning, match=r"metrics\.csv is damaged.*metrics\.damaged\.csv") as said:
        log.rewind(128)
    assert len(said) == 1
    log.log_metrics({"beta": 0.5}, step=192)
    assert path.read_bytes() == b"steps,beta\r\n192,0.5\r\n"
    aside = tmp_path / "metrics.damaged.csv"
    assert aside.is_dir() if content is None else aside.read_bytes() == content


def test_a_row_that_does_not_fit_on_the_disk_leaves_nothing(small_disk):
    path = small_disk / "metrics.csv"
    log = MetricsFile(path)
    log.log_metrics({"beta": 0.5}, step=64)
    filled = small_disk / "filled"
    _fill(filled)
    with pytest.raises(DiskFullError, match=r"metrics\.csv"):
        _log_rows(log)
    assert path.read_bytes().endswith(b"\r\n")
    filled.unlink()
    log.log_metrics({"beta": 0.25}, step=10**7)
    assert path.read_bytes().endswith(b"\r\n10000000,0.25\r\n")


def _fill(path):
    with suppress(OSError), path.open("wb") as file:
        while True:
            os.write(file.fileno(), bytes(4096))


def _log_rows(log):
    for step in range(128, 10**6, 64):
        log.log_metrics({"beta": 1 / 3}, step=step)
