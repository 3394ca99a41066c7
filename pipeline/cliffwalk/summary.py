"""Medians over seeds, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from pipeline.cliffwalk.record import SCHEMA as RUNS
from pipeline.cliffwalk.record import Record, label_of, trial_columns
from training.cliffwalk.sampler import Sampler

__all__ = ["SCHEMA", "Spread", "Summary", "spread", "summarize"]

_COVERAGE: Final = 0.95
_NUMBERS: Final = ("updates", "updates_after_goal")
_SETTINGS: Final = RUNS.names[: RUNS.names.index("seed")]
SCHEMA: Final = pa.schema(
    [
        *(RUNS.field(name) for name in _SETTINGS),
        pa.field("trials", pa.int64()),
        pa.field("converged", pa.int64()),
        *(
            pa.field(f"{name}_{part}", pa.float64())
            for name in _NUMBERS
            for part in ("median", "low", "high")
        ),
    ]
)
"""summary.parquet: infinity stands for trials that did not converge."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A median and an interval that holds the true one in 95 % of cases at least."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Summary:
    """All trials that differ by their seed alone."""

    columns: dict[str, Any]
    """What they have in common: the settings of `SCHEMA`."""
    label: str
    sampler: Sampler
    trials: int
    converged: int
    updates: Spread
    updates_after_goal: Spread

    @property
    def n(self) -> int:
        """States."""
        return int(self.columns["n"])

    def row(self) -> dict[str, Any]:
        """One row of `SCHEMA`."""
        row = self.columns | {"trials": self.trials, "converged": self.converged}
        for name in _NUMBERS:
            found: Spread = getattr(self, name)
            row |= {f"{name}_{part}": getattr(found, part) for part in ("median", "low", "high")}
        return row


def summarize(records: Iterable[Record]) -> list[Summary]:
    """One summary for each setting and n, in order of the settings and then of n."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        columns = trial_columns(record.trial)
        groups.setdefault(tuple(columns[name] for name in _SETTINGS), []).append(record)
    found = [_summary(key, members) for key, members in groups.items()]
    order = {label: i for i, label in enumerate(dict.fromkeys(each.label for each in found))}
    return sorted(found, key=lambda each: (order[each.label], each.n))


def spread(values: Sequence[float]) -> Spread:
    """The median, and the order statistics around it that cover it in 95 % of cases.

    Whatever the distribution, the number of values below the true median is binomial (n, 1/2).
    Fewer than 6 values cannot cover so much: then it is their range.
    """
    ordered = sorted(values)
    count = len(ordered)
    middle = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    outside, rank = 0.0, 0
    while rank < count // 2:
        tail = math.comb(count, rank) / 2**count
        if outside + tail > (1 - _COVERAGE) / 2:
            break
        outside += tail
        rank += 1
    rank = max(rank - 1, 0)
    return Spread(middle, ordered[rank], ordered[count - 1 - rank])


def _summary(key: tuple[Any, ...], members: Sequence[Record]) -> Summary:
    outcomes = [record.outcome for record in members]
    return Summary(
        columns=dict(zip(_SETTINGS, key, strict=True)),
        label=label_of(members[0].trial),
        sampler=members[0].trial.sampler,
        trials=len(members),
        converged=sum(outcome.converged for outcome in outcomes),
        updates=spread([each.updates if each.converged else math.inf for each in outcomes]),
        updates_after_goal=spread(
            [each.updates_after_goal if each.converged else math.inf for each in outcomes]
        ),
    )
