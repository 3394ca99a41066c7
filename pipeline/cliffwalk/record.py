"""Trials and what became of them, as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from training.cliffwalk.sampler import Sampler
from training.cliffwalk.trial import Outcome, Trial

__all__ = ["SCHEMA", "Record", "label_of", "trial_columns"]

SCHEMA: Final = pa.schema(
    [
        ("n", pa.int64()),
        ("sampler", pa.string()),
        ("initial", pa.string()),
        ("epsilon", pa.float64()),
        ("alpha", pa.float64()),
        ("decay", pa.float64()),
        ("window", pa.int64()),
        ("eta", pa.float64()),
        ("learner", pa.string()),
        ("start", pa.string()),
        ("seed", pa.int64()),
        ("updates", pa.int64()),
        ("goal_update", pa.int64()),
        ("updates_after_goal", pa.int64()),
        ("converged", pa.bool_()),
        ("mean_squared_error", pa.float64()),
        ("seconds", pa.float64()),
    ]
)
"""runs.parquet: settings that a sampler does not have are null."""
_OF_PRIORITIES: Final = ("initial", "epsilon", "alpha")
_OF_SEQUENCES: Final = ("decay", "eta")


@dataclass(frozen=True, slots=True)
class Record:
    """A finished trial."""

    trial: Trial
    outcome: Outcome
    seconds: float

    def row(self) -> dict[str, Any]:
        """One row of `SCHEMA`."""
        outcome = self.outcome
        return trial_columns(self.trial) | {
            "updates": outcome.updates,
            "goal_update": outcome.goal_update,
            "updates_after_goal": outcome.updates_after_goal,
            "converged": outcome.converged,
            "mean_squared_error": outcome.mean_squared_error,
            "seconds": self.seconds,
        }

    def without_curve(self) -> Record:
        """The same without what only a picture needs."""
        return replace(self, outcome=replace(self.outcome, curve=[]))

    @classmethod
    def of(cls, row: Mapping[str, Any], curve: list[tuple[int, float]]) -> Record:
        """The record that gave `row`, with the curve that was kept for it."""
        settings = _OF_PRIORITIES + _OF_SEQUENCES
        known = {name: row[name] for name in settings if row[name] is not None}
        trial = Trial(
            n=row["n"],
            sampler=Sampler(row["sampler"], **known),
            learner=row["learner"],
            start=row["start"],
            seed=row["seed"],
        )
        outcome = Outcome(
            updates=row["updates"],
            goal_update=row["goal_update"],
            converged=row["converged"],
            mean_squared_error=row["mean_squared_error"],
            curve=curve,
        )
        return cls(trial, outcome, row["seconds"])


def trial_columns(trial: Trial) -> dict[str, Any]:
    """The columns that say which trial it is."""
    sampler = trial.sampler
    columns: dict[str, Any] = {"n": trial.n, "sampler": sampler.name}
    for name in _OF_PRIORITIES:
        columns[name] = getattr(sampler, name) if sampler.prioritized else None
    for name in ("decay", "window", "eta"):
        columns[name] = getattr(sampler, name) if sampler.sequential else None
    return columns | {"learner": trial.learner, "start": trial.start, "seed": trial.seed}


def label_of(trial: Trial) -> str:
    """The sampler, and learner and start where they are not the usual ones."""
    parts = [trial.sampler.label]
    if trial.learner != "tabular":
        parts.append(trial.learner)
    if trial.start != "zero":
        parts.append("N(0, 0.1)")
    return ", ".join(parts)
