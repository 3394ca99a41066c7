from __future__ import annotations

import math
import os
import warnings
from contextlib import suppress

import numpy as np
import pytest

from storage import Ending, EpisodeRecord
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
        recent.add(ended(float(value)))
    again = RecentReturns.restore(recent.state())
    assert (again.mean, again.count) == (99.5, 150)
    again.add(ended(1000.0, Ending.TRUNCATED))
    assert again.mean == pytest.approx(99.5 + 9.5)


def ended(episode_return: float, ending: Ending = Ending.TERMINATED) -> EpisodeRecord:
    return EpisodeRecord(0, 0, 0, 5, ending, episode_return, None, 0, 0)


@pytest.mark.parametrize("ending", [Ending.CUT, Ending.SALVAGED])
def test_an_episode_that_was_cut_is_counted_but_has_no_return(ending: Ending) -> None:
    recent = RecentReturns()
    recent.add(ended(-50.0, ending))
    assert recent.count == 1
    assert math.isnan(recent.mean)
    recent.add(ended(3.0))
    assert (recent.mean, recent.count) == (3.0, 2)


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
    with pytest.warns(UserWarning, match=r"metrics\.csv: its last row was cut, and is dropped$"):
        log.rewind(1000)
    log.log_metrics({"beta": 0.0625}, step=256)
    assert path.read_bytes() == WHOLE + b"256,0.0625\r\n"
    assert [each.name for each in tmp_path.iterdir()] == ["metrics.csv"]


def test_a_torn_header_is_no_header(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_bytes(b"steps,be")
    log = MetricsFile(path)
    with pytest.warns(UserWarning, match="its last row was cut"):
        log.rewind(0)
    log.log_metrics({"beta": 0.5}, step=64)
    assert path.read_bytes() == b"steps,beta\r\n64,0.5\r\n"


@pytest.mark.parametrize(
    ("content", "steps", "told"),
    [
        (None, 160, "rows from the beginning up to step 160 are missing, and stay so"),
        (b"", 64, "rows from the beginning up to step 64 are missing"),
        (b"steps,beta\r\n", 70, "rows from the beginning up to step 70 are missing"),
        (WHOLE, 192, "rows after step 128 up to step 192 are missing"),
        (WHOLE, 1000, r"rows after step 128 up to step 1,000 are missing"),
        (WHOLE + b"19", 200, r"was cut, and is dropped; rows after step 128 up to step 200 are"),
    ],
)
def test_lost_rows_are_told_once_and_stop_nothing(tmp_path, content, steps, told):
    """The file is gone, or was cut at the end of a line or within one."""
    path = tmp_path / "metrics.csv"
    if content is not None:
        path.write_bytes(content)
    log = MetricsFile(path, 64)
    with pytest.warns(UserWarning, match=rf"metrics\.csv: .*{told}") as said:
        log.rewind(steps)
    assert len(said) == 1
    log.log_metrics({"beta": 0.5}, step=steps + 64)
    assert path.read_bytes().endswith(b"%d,0.5\r\n" % (steps + 64))


@pytest.mark.parametrize(
    ("content", "interval", "steps"),
    [
        (None, 64, 0),
        (None, 64, 63),
        (None, 0, 500),
        (WHOLE, 64, 191),
        (WHOLE + b"192,0.1\r\n", 64, 130),
        (b"steps,beta\r\n1000,0.5\r\n", 64, 1500),
    ],
)
def test_a_file_with_all_its_rows_is_passed_over(tmp_path, content, interval, steps):
    """Among them one whose rows were further apart before the run was resumed."""
    path = tmp_path / "metrics.csv"
    if content is not None:
        path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MetricsFile(path, interval).rewind(steps)


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
