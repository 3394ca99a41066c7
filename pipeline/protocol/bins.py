"""Returns of training episodes in bins of steps: the protocol of ReF-ER's experiments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Bin", "TrainingReturns", "binned"]

_BAND = (0.2, 0.8)


@dataclass(frozen=True, slots=True)
class TrainingReturns:
    """Episodes of one run in the order in which they entered the replay memory.

    An episode enters when it has ended, so the step at which it enters is the number of steps of
    all that have, itself included. With one lane that is the step of the run; with several it is
    less, by the steps of the other lanes' episodes that go on: of 16 lanes whose episodes of 1,000
    steps all end at step 16,000 of the run, ten enter at steps up to 10,000.
    """

    entered: npt.NDArray[np.int64]
    """Steps in the memory behind each episode's entry, warm-up included; (episodes,)."""
    returns: npt.NDArray[np.float64]
    """Undiscounted sums of raw rewards; NaN of episodes that were cut off from outside."""
    warmup: int
    """Steps before the first update."""


@dataclass(frozen=True, slots=True)
class Bin:
    """One bin of the runs of one method; bin 0 is the warm-up, bin 1 begins behind it."""

    number: int
    first: int
    """Its first step, counted from 1 behind the warm-up; of bin 0, from 1 with it."""
    last: int
    warmup: int
    episodes: int
    """Of all runs together."""
    means: tuple[float, ...]
    """Mean return of each run's episodes; NaN where none ended in the bin."""
    complete: bool
    """Whether every run has gone through all of it."""

    @property
    def first_with_warmup(self) -> int:
        """Its first step with the warm-up counted, from 1."""
        return self.first + self._before

    @property
    def last_with_warmup(self) -> int:
        """Its last step with the warm-up counted."""
        return self.last + self._before

    @property
    def runs(self) -> int:
        """Runs of which an episode ended in it."""
        return len(self._known)

    @property
    def mean(self) -> float:
        """Mean over the runs of each run's mean; NaN for none."""
        return float(np.mean(self._known)) if self.runs else float("nan")

    @property
    def band(self) -> tuple[float, float]:
        """The 20 % and 80 % quantiles of the runs' means, linear between them; NaN for none."""
        if not self.runs:
            return float("nan"), float("nan")
        low, high = np.quantile(self._known, _BAND)
        return float(low), float(high)

    @property
    def _known(self) -> list[float]:
        return [mean for mean in self.means if not np.isnan(mean)]

    @property
    def _before(self) -> int:
        return self.warmup if self.number else 0


def binned(runs: Sequence[TrainingReturns], size: int) -> list[Bin]:
    """Bins of `size` steps, those before the last that any run has an episode in.

    Bin k > 0 has the episodes that entered at a step in (warm-up + (k - 1) size, warm-up + k size];
    bin 0, there if the runs have a warm-up, those up to it. All runs have the same warm-up.
    """
    warmup = runs[0].warmup
    reached = [int(run.entered[-1]) if len(run.entered) else 0 for run in runs]
    count = max(0, -(-(max(reached) - warmup) // size))
    places = [_places(run, size) for run in runs]
    return [_bin(number, runs, places, size, min(reached)) for number in _numbers(warmup, count)]


def _numbers(warmup: int, count: int) -> range:
    return range(0 if warmup else 1, count + 1)


def _places(run: TrainingReturns, size: int) -> npt.NDArray[np.int64]:
    """The bin of each episode."""
    return np.maximum(-(-(run.entered - run.warmup) // size), 0)


def _bin(
    number: int,
    runs: Sequence[TrainingReturns],
    places: Sequence[npt.NDArray[Any]],
    size: int,
    reached: int,
) -> Bin:
    warmup = runs[0].warmup
    first, last = ((number - 1) * size + 1, number * size) if number else (1, warmup)
    own = [
        run.returns[(place == number) & ~np.isnan(run.returns)]
        for run, place in zip(runs, places, strict=True)
    ]
    return Bin(
        number,
        first,
        last,
        warmup,
        episodes=sum(map(len, own)),
        means=tuple(float(each.mean()) if len(each) else float("nan") for each in own),
        complete=last + (warmup if number else 0) <= reached,
    )
