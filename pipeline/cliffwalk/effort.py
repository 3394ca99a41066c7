"""How long trials will take, by what others took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from training.cliffwalk.sampler import Sampler
from training.cliffwalk.trial import Trial

__all__ = ["effort_text", "seconds_of"]

_UPDATES: Final[Mapping[tuple[str, str], float]] = {
    ("uniform", "epsilon"): 27.0,
    ("per", "epsilon"): 3.5,
    ("per", "max"): 2.5,
    ("pser-max", "epsilon"): 1.5,
    ("pser-max", "max"): 21.0,
    ("pser-add", "epsilon"): 1.5,
    ("pser-add", "max"): 27.0,
}
"""Updates over 2^n, from 0 by a table: medians for n = 8, 12 and 16. The oracle's are too few."""
_UNIFORM_SECONDS: Final = 6e-6
_SECONDS: Final = 1e-5
"""Of an update that feeds its error back; uniform replay feeds nothing back."""


def seconds_of(trials: Iterable[Trial]) -> float:
    """Seconds that one free core takes for `trials`, if all started from 0 by a table."""
    return sum(_updates(trial) * _seconds(trial.sampler) for trial in trials)


def effort_text(trials: Iterable[Trial]) -> str:
    """The same in words, such as "some 25 min of one core"; empty for less than a minute."""
    minutes = seconds_of(trials) / 60
    if minutes < 1:
        return ""
    number, unit = (minutes, "min") if minutes < 90 else (minutes / 60, "h")
    rounded = round(number) if number < 10 else 5 * round(number / 5)
    return f"some {rounded:,} {unit} of one core"


def _updates(trial: Trial) -> float:
    return _UPDATES.get((trial.sampler.name, trial.sampler.initial), 0.0) * 2.0**trial.n


def _seconds(sampler: Sampler) -> float:
    return _SECONDS if sampler.prioritized else _UNIFORM_SECONDS
