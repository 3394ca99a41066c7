"""`sharpwave curve RUN ...`: learning curves on the screen and as pictures."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from pipeline.parser import VerbParser, positive
from pipeline.run_folder import RunFolder
from storage.errors import ConfigError

__all__ = ["main", "show_curve"]


def main(arguments: Sequence[str]) -> int:
    """Runs the verb."""
    parser = VerbParser(
        "curve",
        "Draws the learning curve of a run, also while it is training; of several runs, a table "
        "and one picture of all.",
    )
    parser.add_argument(
        "runs", metavar="RUN", type=Path, nargs="+", help="a run's folder, as runs/hopper"
    )
    parser.add_argument(
        "--mean-of", type=positive, default=20, metavar="N", help="episodes a mean (default 20)"
    )
    parser.add_argument(
        "--picture",
        type=Path,
        metavar="PNG",
        help="where the picture goes (default: RUN/curve.png, of several runs curves.png beside "
        "the first)",
    )
    settings = parser.parse(arguments)
    runs = [RunFolder.existing(path) for path in settings.runs]
    if len(runs) == 1:
        show_curve(runs[0], window=settings.mean_of, picture=settings.picture)
    else:
        _show_comparison(runs, settings.mean_of, settings.picture)
    return 0


def show_curve(
    run: RunFolder, *, window: int = 20, picture: Path | None = None, asked: bool = True
) -> None:
    """Prints the curve and renews the run's picture, or draws it into `picture`.

    Warns where the run's own picture cannot be written, as of a run of somebody else's. Where
    nobody `asked` for a curve and there is none, prints why.

    Raises:
        ConfigError: the run has nothing to draw, and why; or `picture` cannot be written.
    """
    from pipeline.curve_plot import save_curve
    from pipeline.curve_text import curve_text
    from pipeline.learning_curve import read_learning_curve

    curve = read_learning_curve(run.path)
    if curve.missing and not asked:
        print(f"no curve: {curve.missing}")
        return
    if curve.missing:
        raise ConfigError(f"{run.path} has no curve: {curve.missing}")
    print(curve_text(curve, window=window, unicode=_speaks_unicode()))
    draw = partial(save_curve, curve, title=run.title(), window=window)
    path = _drawn(draw, run.curve, picture)
    last = "last evaluation" if curve.offline else f"last {window} episodes"
    where = "" if path is None else f"    picture: {path}"
    print(f"\n{last}: mean return {curve.last(window):,.1f}{where}")


def _drawn(draw: Callable[[Path], Path], usual: Path, picture: Path | None) -> Path | None:
    """Draws into `picture`; or where nobody asked for one, into `usual` if that can be written.

    Raises:
        ConfigError: `picture` cannot be written.
    """
    if picture is not None:
        return draw(picture)
    try:
        return draw(usual)
    except ConfigError as error:
        warnings.warn(str(error), stacklevel=3)
        return None


def _show_comparison(runs: Sequence[RunFolder], window: int, picture: Path | None) -> None:
    from pipeline.comparison import compare
    from pipeline.comparison_plot import save_comparison
    from pipeline.comparison_table import group_table, markdown_table

    refused = {run.path: reason for run in runs if (reason := _refusal(run))}
    known = [run for run in runs if run.path not in refused]
    rows = compare(known, window=window)
    for table in (markdown_table(rows, window=window), group_table(rows)):
        if table:
            print(f"{table}\n")
    problems = refused | {
        run.path: row.problem for run, row in zip(known, rows, strict=True) if row.problem
    }
    missing = [f"{run.path}: {problems[run.path]}" for run in runs if run.path in problems]
    if len(missing) == len(runs):
        raise ConfigError(f"there is nothing to draw. {'; '.join(missing)}")
    for line in missing:
        print(f"not drawn: {line}")
    draw = partial(save_comparison, rows, window=window)
    path = _drawn(draw, runs[0].path.parent / "curves.png", picture)
    if path is not None:
        print(f"picture: {path}")


def _refusal(run: RunFolder) -> str:
    """Why nothing at all can be said of a run; empty where its settings can be read."""
    try:
        run.settings()
    except ConfigError as error:
        return str(error)
    return ""


def _speaks_unicode() -> bool:
    return "utf" in (sys.stdout.encoding or "").lower()
