"""Several runs side by side: what each learnt, as rows of one table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.comparison_groups import RunSettings, group_names
from pipeline.learning_curve import LearningCurve, read_learning_curve
from pipeline.metric_columns import read_columns
from pipeline.run_folder import RunFolder
from storage.errors import SharpwaveError

__all__ = ["ComparedRun", "by_group", "by_panel", "compare", "seed_count"]


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One run's row; what its files do not hold yet is NaN."""

    name: str
    environment: str
    rules: str
    group: str
    """What the run shares with those that differ by their seed alone, in a few words."""
    seed: int
    steps: int
    """Environment steps of the episodes that have ended, or updates where the run does not act."""
    last_return: float
    """Mean return of the last training episodes, or of the last evaluation."""
    far_fraction: float
    """Mean of n_far/N over the second half of the steps."""
    beta: float
    """At the end."""
    steps_per_second: float
    """Over the whole run, everything included."""
    curve: LearningCurve
    problem: str = ""
    """Why the run cannot be drawn; empty where it can."""


def compare(runs: Sequence[RunFolder], *, window: int = 20) -> list[ComparedRun]:
    """Reads the runs; `window` is the number of episodes that `last_return` is the mean of."""
    settings = [RunSettings.read(run) for run in runs]
    groups = group_names(settings)
    return [
        _row(run, kept, group, window)
        for run, kept, group in zip(runs, settings, groups, strict=True)
    ]


def by_panel(rows: Iterable[ComparedRun]) -> dict[tuple[str, bool], list[ComparedRun]]:
    """What may be drawn over one another: the runs of one environment, offline ones apart."""
    panels: dict[tuple[str, bool], list[ComparedRun]] = {}
    for row in rows:
        panels.setdefault((row.environment, row.curve.offline), []).append(row)
    return panels


def by_group(rows: Iterable[ComparedRun]) -> dict[str, list[ComparedRun]]:
    """The runs of one panel by their group, both in the order in which they were named."""
    groups: dict[str, list[ComparedRun]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    return groups


def seed_count(rows: Sequence[ComparedRun]) -> str:
    """How many a group has, such as "3 seeds"; "2 runs" where a seed comes twice."""
    noun = "seed" if len({row.seed for row in rows}) == len(rows) else "run"
    return f"{len(rows)} {noun}{'s' * (len(rows) > 1)}"


def _row(run: RunFolder, kept: RunSettings, group: str, window: int) -> ComparedRun:
    curve, speed, problem = _read(run, kept)
    late = curve.schedule_steps > run.settings()["loop"]["steps"] / 2
    done = curve.schedule_steps if curve.offline else curve.steps
    return ComparedRun(
        name=kept.name,
        environment=kept.environment,
        rules=run.rules(),
        group=group,
        seed=kept.seed,
        steps=int(done[-1]) if len(done) else 0,
        last_return=curve.last(window),
        far_fraction=float(curve.far_fraction[late].mean()) if late.any() else float("nan"),
        beta=float(curve.beta[-1]) if len(curve.beta) else float("nan"),
        steps_per_second=speed,
        curve=curve,
        problem=problem,
    )


def _read(run: RunFolder, kept: RunSettings) -> tuple[LearningCurve, float, str]:
    """The run's curve and speed, and why it cannot be drawn.

    One damaged run does not stop the others.
    """
    try:
        curve, speed = read_learning_curve(run.path), _speed(run)
    except (SharpwaveError, OSError) as error:
        none = np.empty(0)
        curve = LearningCurve(none, none, none, none, none, offline=kept.offline)
        return curve, float("nan"), str(error)
    return curve, speed, curve.missing


def _speed(run: RunFolder) -> float:
    """Steps a second over the whole run; NaN before the first line of metrics.csv."""
    timed = read_columns(run.metrics, "wall_time")
    if not len(timed):
        return float("nan")
    steps, seconds = timed[-1]
    return float(steps / seconds) if seconds > 0 else float("nan")
