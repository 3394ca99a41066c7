"""Columns of a run's metrics.csv."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from storage.errors import ConfigError

__all__ = ["read_columns"]

_STEP_COLUMNS: Final = ("steps", "environment_steps")
"""A line's steps are in the first of these that it fills; earlier versions wrote the second."""


def read_columns(path: Path, *columns: str) -> npt.NDArray[np.float64]:
    """Steps and `columns` of the lines that have them all, shape (lines, 1 + columns), float64.

    A file that is not there yet has no lines.

    Raises:
        ConfigError: the file cannot be read or is no table of numbers; its message says why.
    """
    try:
        rows = _rows(path, columns) if path.exists() else []
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(
            f"{path} is damaged: it is no CSV text ({error}); move it away to go without it"
        ) from error
    return np.asarray(rows, dtype=np.float64).reshape(-1, 1 + len(columns))


def _rows(path: Path, columns: tuple[str, ...]) -> list[list[float]]:
    rows: list[list[float]] = []
    with path.open(newline="", encoding="utf-8") as file:
        lines = csv.DictReader(file)
        for line in lines:
            steps = next((line[name] for name in _STEP_COLUMNS if line.get(name)), None)
            cells = [steps, *(line.get(name) for name in columns)]
            if all(cells):
                where = f"{path}, line {lines.line_num}"
                rows.append([_number(cell, where) for cell in cells if cell])
                _check_steps(rows[-1][0], where)
    return rows


def _number(cell: str, where: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise _wrong_line(cell, where, "no number") from None


def _check_steps(steps: float, where: str) -> None:
    if not (math.isfinite(steps) and steps >= 0):
        raise _wrong_line(str(steps), where, "no number of steps")


def _wrong_line(cell: str, where: str, what: str) -> ConfigError:
    return ConfigError(f"{where}: {cell!r} is {what}; take the line out of the file")
