from __future__ import annotations

import pytest

from bench.window_curve import fitting


def test_windows_that_the_disk_cannot_hold_are_left_out_and_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    windows = [2**14, 2**18, 2**22]
    assert fitting(windows, 10**12) == windows
    assert capsys.readouterr().err == ""
    assert fitting(windows, 10**9) == windows[:2]
    shown = capsys.readouterr().err
    assert "a window of 4,194,304 steps needs" in shown
    assert "there are 1.0: left out" in shown
    assert fitting(windows, 0) == []
