from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import storage
from pipeline.curve import main
from pipeline.learning_curve import read_learning_curve
from storage.errors import ConfigError


def test_the_curve_is_the_store_s(run: Path) -> None:
    curve = read_learning_curve(run)
    with storage.open(run / "store") as store:
        returns = store.episodes["return"].to_numpy()
    assert curve.steps[-1] == 1100
    assert np.array_equal(curve.returns, returns)
    assert len(curve.beta) == len(curve.far_fraction) == len(curve.schedule_steps) > 3
    assert curve.schedule_steps[-1] == 1100


def test_drawn_again(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "curve.png").unlink()
    main([str(run), "--mean-of=5"])
    assert "mean of 5" in capsys.readouterr().out
    assert (run / "curve.png").stat().st_size > 10_000


def test_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no run"):
        main([str(tmp_path)])
