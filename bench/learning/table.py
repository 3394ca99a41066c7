"""The table of the results page: one line a method, over its seeds."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any, Final

import numpy as np

__all__ = ["markdown"]

_HEAD: Final = (
    "| environment | method | seeds | training return, last tenth | greedy, best checkpoint "
    "| greedy, final |\n| --- | --- | ---: | ---: | ---: | ---: |"
)


def markdown(lines: Iterable[dict[str, Any]]) -> str:
    """Means over seeds, and each seed's mean in brackets.

    "Training return" is the mean over the last tenth of the bins behind the warm-up; "greedy" are
    20 episodes on fresh seeds.
    """

    def key(line: dict[str, Any]) -> tuple[str, str]:
        return line["environment"], line["method"]

    rows = [_row(*found, list(group)) for found, group in groupby(sorted(lines, key=key), key=key)]
    return "\n".join([_HEAD, *rows])


def _row(environment: str, method: str, lines: list[dict[str, Any]]) -> str:
    cells = [
        [_last_tenth(line) for line in lines],
        [float(np.mean(line["best"]["returns"])) for line in lines],
        [float(np.mean(line["last"]["returns"])) for line in lines],
    ]
    shown = " | ".join(_cell(values) for values in cells)
    return f"| {environment} | {method} | {len(lines)} | {shown} |"


def _last_tenth(line: dict[str, Any]) -> float:
    bins = line["bins"][1 if line["warmup"] else 0 :]
    return float(np.nanmean(bins[-max(1, len(bins) // 10) :]))


def _cell(values: list[float]) -> str:
    each = ", ".join(f"{value:,.0f}" for value in values)
    return f"{np.mean(values):,.0f} ({each})" if len(values) > 1 else each
