"""What a run learnt: returns of its episodes and ReF-ER's schedule, by environment steps.

A run that learns from a store does not act: it has returns of evaluations only, by updates.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import storage
from pipeline.episode_order import in_order_of_end, whole_returns
from pipeline.metric_columns import read_columns
from pipeline.run_folder import RunFolder

__all__ = ["LearningCurve", "Numbers", "read_learning_curve", "running_mean"]

Numbers = npt.NDArray[np.float64]


def _none() -> Numbers:
    return np.empty(0)


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """All arrays are float64; steps are `unit`, warm-up included.

    `steps` and `returns` have one entry an episode, in the order in which episodes ended; a return
    is NaN where the environment did not end the episode, and counts in no mean. `schedule_steps`,
    `beta` and `far_fraction` have one entry a line of metrics.csv that has them, and so have
    `greedy_steps` and `greedy_returns`, the means of evaluations.
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
    offline: bool = False
    """Whether the run learns from a fixed store, so that it has no episodes of its own."""
    evaluated: bool = True
    """Whether the run's settings have it evaluated."""
    lost: str = ""
    """What of the run's files is not there, though it has begun; empty where all is."""

    @property
    def unit(self) -> str:
        """What steps are."""
        return "updates" if self.offline else "environment steps"

    @property
    def end(self) -> float:
        """The last of all steps that a curve with something to draw knows of."""
        return float((self.greedy_steps if self.offline else self.steps)[-1])

    @property
    def whole(self) -> npt.NDArray[np.bool_]:
        """Whether each episode was ended by its environment."""
        return ~np.isnan(self.returns)

    @property
    def missing(self) -> str:
        """Why there is nothing to draw; empty where there is."""
        if len(self.greedy_returns) if self.offline else self.whole.any():
            return ""
        if self.lost:
            return self.lost
        if not self.offline and len(self.returns):
            return "every episode was cut, by the end of the run for instance, so none has a return"
        if not self.offline:
            return "no episode has ended yet"
        if self.evaluated:
            return "it learns from a store without acting, and no evaluation has been played yet"
        return (
            "it learnt from a store without acting and with evaluation.episodes 0, so it has no "
            "returns; what it measured is in its metrics.csv"
        )

    def line(self, window: int) -> tuple[Numbers, Numbers]:
        """Steps and returns of the curve: means of `window` training episodes, or evaluations."""
        if self.offline:
            return self.greedy_steps, self.greedy_returns
        whole = self.whole
        return self.steps[whole], running_mean(self.returns[whole], window)

    def line_name(self, window: int) -> str:
        """What the points of `line` are returns of."""
        if self.offline:
            return "return of greedy evaluations"
        return f"return of training episodes, mean of the last {window}"

    def last(self, episodes: int) -> float:
        """The end of `line(episodes)`; NaN before the first of its points."""
        points = self.greedy_returns[-1:] if self.offline else self.returns[self.whole][-episodes:]
        return float(points.mean()) if len(points) else float("nan")


def read_learning_curve(run: Path) -> LearningCurve:
    """Reads `run`/store and `run`/metrics.csv; a run that just began gives empty arrays.

    Raises:
        SharpwaveError: the settings, the store or metrics.csv are damaged.
    """
    folder = RunFolder(run)
    settings = _settings(folder)
    offline = settings.get("replay", {}).get("store") is not None
    name = settings.get("name")
    own = (_none(), _none()) if offline else _episodes(folder.store, name)
    schedule = read_columns(folder.metrics, "beta", "far_fraction")
    greedy = read_columns(folder.metrics, "evaluation_return")
    warmup, far_target = _marks(settings)
    return LearningCurve(
        *own,
        *(schedule[:, 0], schedule[:, 1], schedule[:, 2]),
        *(greedy[:, 0], greedy[:, 1]),
        warmup,
        far_target,
        offline,
        settings.get("evaluation", {}).get("episodes") != 0,
        "" if offline else _lost(folder),
    )


def running_mean(values: Numbers, window: int) -> Numbers:
    """Mean of each value and up to `window - 1` before it; shape and dtype as `values`."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    return np.asarray((sums[ends] - sums[starts]) / (ends - starts), dtype=np.float64)


def _settings(run: RunFolder) -> dict[str, Any]:
    """The run's settings; none without the file."""
    return run.settings() if run.config.is_file() else {}


def _lost(run: RunFolder) -> str:
    """Says so where a run that has measured something has no store (any more)."""
    if run.store.is_dir() or not run.metrics.is_file():
        return ""
    return f"{run.store} is not there, which holds its episodes; put it back from a copy"


def _episodes(path: Path, name: Any) -> tuple[Numbers, Numbers]:
    """Ends and returns of the run's own episodes, whoever else wrote into its store.

    Those of segments that the run has dropped since are known by their tables.
    """
    if not path.is_dir():
        return _none(), _none()
    store = storage.open(path)
    try:
        records = in_order_of_end(store, None if name is None else str(name))
    finally:
        store.close()
    return np.cumsum(records["length"], dtype=np.float64), whole_returns(records)


def _marks(settings: dict[str, Any]) -> tuple[int | None, float | None]:
    """The warm-up and D of the run's settings."""
    if not settings:
        return None, None
    refer, acts = settings["agent"]["refer"], settings.get("replay", {}).get("store") is None
    target = refer["far_target"] if refer["rule_2"] else None
    return settings["loop"]["warmup"] if acts else None, target
