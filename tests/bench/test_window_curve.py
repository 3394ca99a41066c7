from __future__ import annotations

from pathlib import Path

import pytest

from bench import window_curve
from bench.effort import Effort
from bench.window_curve import fitting

PLENTY = 10**12


def test_windows_that_disk_or_memory_cannot_hold_are_left_out_and_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    windows = [2**14, 2**18, 2**22]
    assert fitting(windows, {"disk": PLENTY, "memory": PLENTY}) == windows
    assert capsys.readouterr().err == ""
    assert fitting(windows, {"disk": 10**9, "memory": PLENTY}) == windows[:2]
    shown = capsys.readouterr().err
    assert "a window of 4,194,304 steps needs" in shown
    assert "GB of free disk, there are 1.0: left out" in shown
    assert fitting(windows, {"disk": PLENTY, "memory": 10**9}) == windows[:2]
    assert "needs 2.1 GB of free memory, there are 1.0" in capsys.readouterr().err
    assert fitting(windows, {"disk": 0, "memory": 0}) == []


def test_three_curves_over_the_same_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_curve, "EXPONENTS", (10, 12))
    figures = window_curve.measure(tmp_path, Effort(0.0, curves=True, compiled_loop=False))
    lines = [figure.line() for figure in figures]
    series: dict[str, set[str]] = {}
    for line in lines:
        series.setdefault(line["curve"], set()).add(line["series"])
        assert line["value"] > 0
    assert series == {
        "draw and feed-back against window": {"draw", "feed-back"},
        "priorities against window": {"PER draw", "PER feed-back", "PSER feed-back"},
        "memory against window": {"uniform", "per"},
    }
    assert {line["x"] for line in lines} == {2**10, 2**12}
    kept = {line["name"]: line["value"] for line in lines}
    assert kept["per memory against window 4096"] > 8 + kept["uniform memory against window 4096"]
