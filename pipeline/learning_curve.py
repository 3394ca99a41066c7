"""What a run learnt: returns of its episodes and ReF-ER's schedule, by environment steps."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import yaml

import storage

__all__ = ["LearningCurve", "read_learning_curve", "running_mean"]

Numbers = npt.NDArray[np.float64]

_STEP_COLUMN: Final = "environment_steps"


def _none() -> Numbers:
    return np.empty(0)


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """All arrays are float64; steps are environment steps, warm-up included.

    `steps` and `returns` have one entry an episode, in the order in which episodes ended;
    `schedule_steps`, `beta` and `far_fraction` one entry a line of metrics.csv that has them, and
    so have `greedy_steps` and `greedy_returns`, the means of evaluations.
    """

    steps: Numbers
    returns: Numbers
    schedule_steps: Numbers
    beta: Numbers
    far_fraction: Numbers
    greedy_steps: Numbers = field(default_factory=_none)
    greedy_returns: Numbers = field(default_factory=_none)
    warmup: int | None = None
    """Steps before the first update, where known."""
    far_target: float | None = None
    """D, which β is steered by; None where it is not."""

    def last(self, episodes: int) -> float:
        """Mean return of the last `episodes` training episodes; NaN before the first."""
        return float(self.returns[-episodes:].mean()) if len(self.returns) else float("nan")


def read_learning_curve(run: Path) -> LearningCurve:
    """Reads `run`/store and `run`/metrics.csv; a run that just began gives empty arrays."""
    steps, returns = _episodes(run / "store", _name(run / "config.yaml"))
    schedule = _lines(run / "metrics.csv", "beta", "far_fraction")
    greedy = _lines(run / "metrics.csv", "evaluation_return")
    warmup, far_target = _marks(run / "config.yaml")
    return LearningCurve(
        steps,
        returns,
        *(schedule[:, 0], schedule[:, 1], schedule[:, 2]),
        *(greedy[:, 0], greedy[:, 1]),
        warmup,
        far_target,
    )


def running_mean(values: Numbers, window: int) -> Numbers:
    """Mean of each value and up to `window - 1` before it; shape and dtype as `values`."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    return np.asarray((sums[ends] - sums[starts]) / (ends - starts), dtype=np.float64)


def _name(path: Path) -> str | None:
    """The run's name, which its segments bear; None without settings."""
    if not path.is_file():
        return None
    name = yaml.safe_load(path.read_text(encoding="utf-8")).get("name")
    return None if name is None else str(name)


def _episodes(path: Path, name: str | None) -> tuple[Numbers, Numbers]:
    """Ends and returns of the run's own episodes, whoever else wrote into its store."""
    store = storage.open(path)
    try:
        own = [each for each in store.segments if name is None or each.run == name]
        parts = [store.records(segment.id) for segment in own]
    finally:
        store.close()
    if not any(len(part) for part in parts):
        return np.empty(0), np.empty(0)
    records = np.concatenate(parts)
    records = records[np.argsort(records["end_time"], kind="stable")]
    return np.cumsum(records["length"], dtype=np.float64), records["return"].astype(np.float64)


def _lines(path: Path, *columns: str) -> Numbers:
    """Environment steps and `columns` of the lines that have them all."""
    rows: list[list[float]] = []
    if path.exists():
        with path.open(newline="") as lines:
            for line in csv.DictReader(lines):
                cells = [line.get(name) for name in (_STEP_COLUMN, *columns)]
                if all(cells):
                    rows.append([float(cell) for cell in cells if cell])
    return np.asarray(rows, dtype=np.float64).reshape(-1, 1 + len(columns))


def _marks(path: Path) -> tuple[int | None, float | None]:
    """The warm-up and D of the run's settings."""
    if not path.exists():
        return None, None
    kept = yaml.safe_load(path.read_text(encoding="utf-8"))
    refer = kept["agent"]["refer"]
    return kept["loop"]["warmup"], refer["far_target"] if refer["rule_2"] else None
