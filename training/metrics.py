"""Metrics of a run: what is measured, and the file that keeps it.

Rows are indexed by environment steps. They go to the loggers directly, never through
``LightningModule.log``, which costs more than a gradient step.
"""

from __future__ import annotations

import csv
import io
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
from lightning.pytorch.loggers import Logger

from storage.atomic import write_atomic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["EPISODES_AVERAGED", "MetricsFile", "RecentReturns", "effective_fraction", "quantiles"]

EPISODES_AVERAGED = 100
STEPS_COLUMN = "steps"
"""What the budget counts: environment steps, or updates where a fixed store is learnt from."""
OLD_STEPS_COLUMN = "environment_steps"
"""The same in files of runs that began before ``steps`` was a column; now of acting runs only."""
_QUANTILES = (0.05, 0.5, 0.95)


def quantiles(name: str, values: NDArray[np.floating[Any]]) -> dict[str, float]:
    """The 5 %, 50 % and 95 % quantiles of ``values`` as ``name_q05`` and so on."""
    found = np.quantile(values, _QUANTILES)
    return {
        f"{name}_q{round(100 * at):02d}": float(each)
        for at, each in zip(_QUANTILES, found, strict=True)
    }


def effective_fraction(weights: NDArray[np.floating[Any]]) -> float:
    """Effective sample size of importance weights over their number, (Σw)² / (n Σw²)."""
    squares = float(np.square(weights, dtype=np.float64).sum())
    if squares == 0.0:
        return 0.0
    return float(weights.sum(dtype=np.float64)) ** 2 / (len(weights) * squares)


class RecentReturns:
    """Undiscounted returns of the last 100 finished episodes."""

    def __init__(self, returns: Iterable[float] = (), count: int = 0) -> None:
        self._returns: deque[float] = deque(returns, EPISODES_AVERAGED)
        self.count = count
        """Episodes finished since the run began."""

    def add(self, episode_return: float) -> None:
        """Takes one more episode."""
        self._returns.append(episode_return)
        self.count += 1

    @property
    def mean(self) -> float:
        """Mean return; NaN before the first episode ended."""
        return float(np.mean(self._returns)) if self._returns else float("nan")

    def state(self) -> dict[str, Any]:
        """Plain numbers that :meth:`restore` takes back."""
        return {"returns": list(self._returns), "count": self.count}

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> RecentReturns:
        """The returns that :meth:`state` described."""
        return cls(state["returns"], state["count"])


class MetricsFile(Logger):
    """A Lightning logger that appends rows to one CSV file.

    A key that appears later adds a column; earlier rows are empty there. When a run resumes, rows
    after the checkpoint are dropped by :meth:`rewind`, so that the file looks as if the run had
    never stopped.

    Args:
        path: The file; its directory is made when the first row comes.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._columns: list[str] = self._header()

    @property
    def name(self) -> str:
        """Name of the file."""
        return self._path.name

    @property
    def version(self) -> str:
        """Always empty: a run directory holds one run."""
        return ""

    @property
    def experiment(self) -> Path:
        """The file's path."""
        return self._path

    def log_hyperparams(self, *_: Any, **__: Any) -> None:
        """Does nothing: the run's settings are in ``config.yaml``."""

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Appends one row; ``step`` is what the run's budget counts."""
        row = {STEPS_COLUMN: step, **metrics}
        new = [key for key in row if key not in self._columns]
        if new:
            self._columns += new
            self._rewrite([*self._rows(), {key: _text(row[key]) for key in row}])
            return
        with self._path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow([_text(row.get(key)) for key in self._columns])

    def rewind(self, steps: int) -> None:
        """Drops the rows after ``steps`` of the budget."""
        rows = self._rows()
        kept = [row for row in rows if int(row.get(STEPS_COLUMN) or row[OLD_STEPS_COLUMN]) <= steps]
        if len(kept) < len(rows):
            self._rewrite(kept)

    def _header(self) -> list[str]:
        if not self._path.exists():
            return []
        with self._path.open(newline="", encoding="utf-8") as file:
            return next(csv.reader(file), [])

    def _rows(self) -> list[dict[str, str]]:
        if not self._path.exists():
            return []
        with self._path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def _rewrite(self, rows: list[dict[str, str]]) -> None:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, self._columns, restval="")
        writer.writeheader()
        writer.writerows(rows)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(self._path, text.getvalue().encode(), self._path.parent)


def _text(value: float | int | None) -> str:
    """A number with all its digits, so that equal rows are equal numbers."""
    return "" if value is None else repr(value)
