from __future__ import annotations

from pathlib import Path

import matplotlib.image
import pytest

from bench.figure import Spread
from bench.loop_setup import LoopSetup
from bench.profile_plot import draw
from bench.step_profile import PARTS, REST, Stopwatches, main, profile


class Work:
    """Two methods, one of which calls the other, on a clock that only they move."""

    def __init__(self) -> None:
        self.now = 0

    def clock(self) -> int:
        return self.now

    def inner(self, fails: bool = False) -> int:
        self.now += 30
        if fails:
            raise ValueError("inner failed")
        return 7

    def outer(self) -> int:
        self.now += 5
        self.inner()
        self.inner()
        self.now += 10
        return 8


def test_nested_parts_are_counted_once() -> None:
    work = Work()
    watches = Stopwatches(work.clock)
    watches.put_on(work, "inner", "inside")
    watches.put_on(work, "outer", "outside")
    assert work.outer() == 8
    assert work.inner() == 7
    assert watches.taken == {"inside": 90, "outside": 15}
    assert watches.calls == {"inside": 3, "outside": 1}


def test_a_part_that_fails_is_counted_and_its_error_goes_on() -> None:
    work = Work()
    watches = Stopwatches(work.clock)
    watches.put_on(work, "inner", "inside")
    with pytest.raises(ValueError, match="inner failed"):
        work.inner(fails=True)
    work.inner()
    assert watches.taken == {"inside": 60}


def test_two_methods_may_be_one_part() -> None:
    work = Work()
    watches = Stopwatches(work.clock)
    watches.put_on(work, "inner", "all")
    watches.put_on(work, "outer", "all")
    work.outer()
    assert watches.taken == {"all": 75}


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
