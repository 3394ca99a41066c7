from __future__ import annotations

from pathlib import Path

import matplotlib.image
import pytest

from bench.figure import Spread
from bench.loop_setup import LoopSetup
from bench.profile_plot import draw
from bench.step_profile import PARTS, REST, main, profile


def test_every_part_of_a_real_step_is_found(tmp_path: Path) -> None:
    setup = LoopSetup("profile", warmup=256, updates_before=1)
    parts = profile(setup, tmp_path, rounds=4)
    assert tuple(parts) == (*PARTS, REST)
    assert all(spread.median > 0 for spread in parts.values())


def test_the_picture_is_small(tmp_path: Path) -> None:
    parts = {"engine": Spread(600.0, 590.0, 620.0), "draw": Spread(40.0, 39.0, 45.0)}
    path = draw(parts, tmp_path / "images" / "step.png")
    assert path.stat().st_size < 60_000
    assert 500 < matplotlib.image.imread(path).shape[1] < 900


def test_no_rounds_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--rounds", "0"])
    assert left.value.code == 2
    assert capsys.readouterr().err.startswith("error: --rounds is 0; give at least 1")
