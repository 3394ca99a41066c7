"""Plays the trials of a study that are not in its folder yet, and shows them all."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from pipeline.cliffwalk.effort import effort_text
from pipeline.cliffwalk.folder import CliffwalkFolder, write_table
from pipeline.cliffwalk.plot import save_errors, save_updates
from pipeline.cliffwalk.pool import missing_memories, played
from pipeline.cliffwalk.record import Record
from pipeline.cliffwalk.summary import SCHEMA, Summary, summarize
from pipeline.cliffwalk.table import markdown_table, sizes_text, warnings_of
from pipeline.progress_bar import progress_bar
from pipeline.quoting import quote
from training.cliffwalk.sampler import Sampler
from training.cliffwalk.trial import Trial

__all__ = ["plan", "play_trials"]

_SAVE_SECONDS: Final = 5.0
"""What a crash may lose."""
_CURVES: Final = 40
"""Seeds of the largest n whose curves are kept for the picture."""


def plan(sizes: Sequence[int], options: Mapping[str, Any]) -> list[Trial]:
    """Every combination of the options, small n first, each trial once.

    `options` are those of `sharpwave cliffwalk`, by their names. Samplers take of them what they
    know.
    """
    samplers = [
        sampler
        for name in options["samplers"]
        for sampler in _variants(Sampler(name, epsilon=options["epsilon"]), options)
    ]
    settings = {"learner": options["learner"], "start": options["start"]}
    return [
        Trial(n, sampler, seed=seed, **settings)
        for n in sizes
        for sampler in samplers
        for seed in range(options["seeds"])
    ]


def _variants(sampler: Sampler, options: Mapping[str, Any]) -> list[Sampler]:
    if not sampler.prioritized:
        return [Sampler(sampler.name)]
    names = ["initial", "alpha", *(["decay", "eta"] if sampler.sequential else [])]
    return [
        Sampler(sampler.name, epsilon=sampler.epsilon, **dict(zip(names, values, strict=True)))
        for values in product(*(options[name] for name in names))
    ]


def play_trials(
    path: Path, sizes: Sequence[int], options: Mapping[str, Any], processes: int | None
) -> None:
    """Plays what is missing at `path`, writes its tables and pictures, and prints the summary.

    Raises:
        ConfigError: something else is at `path`, or another process plays there.
        KeyboardInterrupt: the user stopped it; says what is kept.
    """
    trials = plan(sizes, options)
    folder = CliffwalkFolder.at(path)
    with folder.held():
        known = folder.read()
        missing = [trial for trial in trials if trial not in known]
        _announce(folder, missing, len(trials) - len(missing))
        interrupted = _play(folder, known, missing, processes or os.cpu_count() or 1)
        summaries = summarize(known.values())
        write_table(pa.Table.from_pylist([s.row() for s in summaries], SCHEMA), path / "summary")
        if interrupted:
            left = sum(trial not in known for trial in trials)
            raise KeyboardInterrupt(
                f"{len(trials) - left:,} of {len(trials):,} trials are in {path}; the same command "
                "plays the rest."
            )
        pictures = [save_errors(known.values(), path / "mse.png")]
        pictures.append(save_updates(summaries, path / "updates.png"))
    _print(summaries, path, [picture for picture in pictures if picture])


def _announce(folder: CliffwalkFolder, missing: Sequence[Trial], played_before: int) -> None:
    """Says what is going to be done before the first trial has ended, and how long it takes."""
    effort = effort_text(missing)
    print(
        f"{len(missing):,} trials to play, {played_before:,} are in {folder.path}"
        + (f"; they take {effort}" if effort else ""),
        flush=True,
    )
    sizes = missing_memories(missing, folder)
    if sizes:
        print(
            f"making the memories of n = {', '.join(map(str, sizes))} first, "
            f"{sum(2**n for n in sizes):,} episodes",
            flush=True,
        )


def _play(
    folder: CliffwalkFolder, known: dict[Trial, Record], missing: Sequence[Trial], processes: int
) -> bool:
    """Plays and saves, adding to `known`; whether the user interrupted it."""
    if not missing:
        return False
    largest = max(trial.n for trial in missing)
    saved = -math.inf
    try:
        with (
            progress_bar(len(missing)) as show,
            closing(played(missing, folder, processes)) as each,
        ):
            for count, record in enumerate(each, 1):
                kept = record.trial.n == largest and record.trial.seed < _CURVES
                known[record.trial] = record if kept else record.without_curve()
                show(count)
                if time.monotonic() - saved > _SAVE_SECONDS:
                    folder.save(known.values())
                    saved = time.monotonic()
    except KeyboardInterrupt:
        return True
    finally:
        folder.save(known.values())
    return False


def _print(summaries: Sequence[Summary], path: Path, pictures: Sequence[Path]) -> None:
    print("\nUpdates until the mean squared error is below 1e-3:\n")
    print(markdown_table(summaries, after_goal=False))
    print("\nof them, after the rewarded transition was first drawn:\n")
    print(markdown_table(summaries, after_goal=True))
    print("\nMedian and its 95 % interval (of fewer than 6 trials: their range).")
    shown = sizes_text(each.n for each in summaries)
    if shown:
        print(f"{shown}; {quote(path / 'summary.csv')} has them all.")
    for line in warnings_of(summaries):
        print(f"\n{line}")
    tables = f"{quote(path / 'runs.parquet')} {quote(path / 'summary.csv')}"
    print(f"\ntables: {tables}")
    if pictures:
        print(f"pictures: {' '.join(quote(picture) for picture in pictures)}")
