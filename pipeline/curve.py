"""`sharpwave curve RUN`: the learning curve on the screen and as RUN/curve.png."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from pipeline.parser import VerbParser, positive
from pipeline.run_folder import RunFolder
from storage.errors import ConfigError

__all__ = ["main", "show_curve"]


def main(arguments: Sequence[str]) -> int:
    """Runs the verb."""
    parser = VerbParser("curve", "Draws the learning curve of a run, also while it is training.")
    parser.add_argument("run", metavar="RUN", type=Path, help="a run's folder, as runs/hopper")
    parser.add_argument(
        "--mean-of", type=positive, default=20, metavar="N", help="episodes a mean (default 20)"
    )
    settings = parser.parse(arguments)
    show_curve(RunFolder.existing(settings.run), window=settings.mean_of)
    return 0


def show_curve(run: RunFolder, *, window: int = 20) -> None:
    """Prints the curve and renews the run's picture."""
    from pipeline.curve_plot import save_curve
    from pipeline.curve_text import curve_text
    from pipeline.learning_curve import read_learning_curve

    if not run.store.is_dir():
        raise ConfigError(
            f"{run.path} has no store of its own, so no training episodes to draw: it learnt from "
            f"a store without acting. Its numbers are in {run.metrics}."
        )
    curve = read_learning_curve(run.path)
    print(curve_text(curve, window=window, unicode=_speaks_unicode()))
    picture = save_curve(curve, run.curve, title=run.title(), window=window)
    print(f"\nlast {window} episodes: mean return {curve.last(window):,.1f}    picture: {picture}")


def _speaks_unicode() -> bool:
    return "utf" in (sys.stdout.encoding or "").lower()
