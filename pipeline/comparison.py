"""Several runs side by side: what each learnt, as rows of one table."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.learning_curve import LearningCurve, read_learning_curve
from pipeline.run_folder import RunFolder

__all__ = ["ComparedRun", "compare", "markdown_table"]


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One run's row; what its files do not hold yet is NaN."""

    name: str
    environment: str
    rules: str
    seed: int
    steps: int
    """Environment steps of the episodes that have ended."""
    last_return: float
    """Mean return of the last training episodes."""
    far_fraction: float
    """Mean of n_far/N over the second half of the steps."""
    beta: float
    """At the end."""
    steps_per_second: float
    """Over the whole run, everything included."""
    curve: LearningCurve


def compare(runs: Sequence[RunFolder], *, window: int = 20) -> list[ComparedRun]:
    """Reads the runs; `window` is the number of episodes that `last_return` is the mean of."""
    return [_row(run, window) for run in runs]


def markdown_table(rows: Sequence[ComparedRun], *, window: int = 20) -> str:
    """A table that reads well on a terminal and in a document alike."""
    heads = (
        *("run", "environment", "rules", "seed", "steps", f"return, last {window}"),
        *("n_far/N, 2nd half", "β at the end", "steps/s"),
    )
    cells = [heads, *(_cells(row) for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(heads))]
    lines = [_line(line, widths) for line in cells]
    return "\n".join([lines[0], _line(["-" * width for width in widths], widths), *lines[1:]])


def _row(run: RunFolder, window: int) -> ComparedRun:
    curve = read_learning_curve(run.path)
    settings = run.settings()
    late = curve.schedule_steps > settings["loop"]["steps"] / 2
    return ComparedRun(
        name=run.path.name,
        environment=settings["environment"]["id"],
        rules=run.rules(),
        seed=settings["seed"],
        steps=int(curve.steps[-1]) if len(curve.steps) else 0,
        last_return=curve.last(window),
        far_fraction=float(curve.far_fraction[late].mean()) if late.any() else float("nan"),
        beta=float(curve.beta[-1]) if len(curve.beta) else float("nan"),
        steps_per_second=_speed(run),
        curve=curve,
    )


def _speed(run: RunFolder) -> float:
    if not run.metrics.exists():
        return float("nan")
    with run.metrics.open(newline="") as lines:
        timed = [line for line in csv.DictReader(lines) if line.get("wall_time")]
    if not timed:
        return float("nan")
    seconds = float(timed[-1]["wall_time"])
    return float(timed[-1]["environment_steps"]) / seconds if seconds else float("nan")


def _cells(row: ComparedRun) -> tuple[str, ...]:
    return (
        *(row.name, row.environment, row.rules, str(row.seed), f"{row.steps:,}"),
        *(_number(row.last_return, ",.1f"), _number(row.far_fraction, ".3f")),
        *(_number(row.beta, ".3f"), _number(row.steps_per_second, ",.0f")),
    )


def _number(value: float, layout: str) -> str:
    return "–" if np.isnan(value) else format(value, layout)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"| {' | '.join(padded)} |"
