"""Metrics of a run: what is measured, and the file that keeps it.

Rows are indexed by environment steps. They go to the loggers directly, never through
``LightningModule.log``, which costs more than a gradient step.
"""

from __future__ import annotations

import csv
import io
import os
import warnings
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
from lightning.pytorch.loggers import Logger

from storage.atomic import append_all, write_atomic
from training.metrics_text import MetricsError, MetricsTable, parse_metrics
from training.setting_aside import set_aside

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from storage import EpisodeRecord

__all__ = [
    "EPISODES_AVERAGED",
    "MetricsFile",
    "RecentReturns",
    "effective_fraction",
    "quantiles",
    "rounds_between_rows",
]

EPISODES_AVERAGED = 100
STEPS_COLUMN = "steps"
"""What the budget counts: environment steps, or updates where a fixed store is learnt from."""
OLD_STEPS_COLUMN = "environment_steps"
"""The same in files of runs that began before ``steps`` was a column; now of acting runs only."""
_LEAST_ROUNDS_BETWEEN_ROWS = 10
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


def rounds_between_rows(every_steps: int, round_steps: int) -> int:
    """Rounds from one row to the next, by ``logging.every_steps`` and ``loop.round_steps``."""
    return max(_LEAST_ROUNDS_BETWEEN_ROWS, -(-every_steps // round_steps))


class RecentReturns:
    """Undiscounted returns of the last 100 episodes that their environment ended."""

    def __init__(self, returns: Iterable[float] = (), count: int = 0) -> None:
        self._returns: deque[float] = deque(returns, EPISODES_AVERAGED)
        self.count = count
        """Episodes finished since the run began, however they ended."""

    def add(self, record: EpisodeRecord) -> None:
        """Takes one more episode; one that was cut has no whole return."""
        if record.ending.by_environment:
            self._returns.append(record.episode_return)
        self.count += 1

    @property
    def mean(self) -> float:
        """Mean return; NaN before the first of them."""
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
        interval: Steps of the budget of which each multiple is followed by a row; 0 where nobody
            knows. Only to tell that rows were lost.
    """

    def __init__(self, path: Path, interval: int = 0) -> None:
        super().__init__()
        self._path = path
        self._interval = interval
        self._known: list[str] | None = None

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
        """Appends one row; ``step`` is what the run's budget counts.

        Raises:
            DiskFullError: there is no room; the file is as it was.
        """
        row = {STEPS_COLUMN: step, **metrics}
        columns = self._columns()
        new = [key for key in row if key not in columns]
        if new:
            rows = [*self._read().rows, {key: _text(row[key]) for key in row}]
            self._rewrite([*columns, *new], rows)
            return
        text = io.StringIO(newline="")
        csv.writer(text).writerow([_text(row.get(key)) for key in columns])
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            append_all(descriptor, text.getvalue().encode(), self._path)
        finally:
            os.close(descriptor)

    def rewind(self, steps: int) -> None:
        """Drops the rows after ``steps`` of the budget, and a torn one.

        A damaged file never stops a run: it is set aside, with a warning, and begun anew. Warns as
        well of a torn row, and of rows that are not there any more.
        """
        there = os.path.lexists(self._path)
        columns, rows, torn = self._read()
        kept = [row for row in rows if _steps(row) <= steps]
        if not there or os.path.lexists(self._path):  # else it was damaged, which was told
            self._tell_lost([_steps(row) for row in kept], steps, torn)
        if torn or len(kept) < len(rows):
            self._rewrite(columns, kept)
        self._known = columns

    def _tell_lost(self, kept: list[int], steps: int, torn: bool) -> None:
        """Warns of rows before ``steps`` that are missing behind those that were kept."""
        told = ["its last row was cut, and is dropped"] if torn else []
        last = max(kept, default=0)
        if self._interval and last < steps // self._interval * self._interval:
            # Another interval may have held before a resume: then rows were as far apart before.
            widest = max(np.diff(sorted({0, *kept})), default=0)
            if steps - last >= widest:
                after = f"after step {last:,}" if kept else "from the beginning"
                told.append(f"rows {after} up to step {steps:,} are missing, and stay so")
        if told:
            warnings.warn(f"{self._path}: {'; '.join(told)}", stacklevel=3)

    def _columns(self) -> list[str]:
        if self._known is None:
            columns, rows, torn = self._read()
            if torn:
                self._rewrite(columns, rows)
            self._known = columns
        return self._known

    def _read(self) -> MetricsTable:
        """What the file holds; nothing where it is damaged, which is then another file."""
        if not os.path.lexists(self._path):
            return MetricsTable([], [])
        try:
            if not self._path.is_file():
                raise MetricsError("it is no regular file")
            return parse_metrics(self._path.read_bytes(), (STEPS_COLUMN, OLD_STEPS_COLUMN))
        except MetricsError as damage:
            aside = set_aside(self._path, self._path.suffix)
            warnings.warn(
                f"{self._path} is damaged ({damage}): it is kept as {aside.name} and begun anew",
                stacklevel=2,
            )
            return MetricsTable([], [])

    def _rewrite(self, columns: list[str], rows: list[dict[str, str]]) -> None:
        text = io.StringIO(newline="")
        if columns:
            writer = csv.DictWriter(text, columns, restval="")
            writer.writeheader()
            writer.writerows(rows)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(self._path, text.getvalue().encode(), self._path.parent)
        self._known = columns


def _steps(row: Mapping[str, str]) -> int:
    """Where in the budget a row stands."""
    return int(row.get(STEPS_COLUMN) or row[OLD_STEPS_COLUMN])


def _text(value: float | int | None) -> str:
    """A number with all its digits, so that equal rows are equal numbers."""
    plain = getattr(value, "item", None)  # NumPy's numbers show their types
    return "" if value is None else repr(value if plain is None else plain())
