"""Runs by what their checkpoints have scored in phases of the Atari protocol."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.protocol.method_settings import check_alike, check_seeds, variant_names
from storage.errors import ConfigError

__all__ = ["ScoredRun", "by_game", "methods_named", "scored_runs"]

_Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """The scores of one run's checkpoint, of all phases that were played with it."""

    where: str
    """Run and file, for messages."""
    method: str
    """Agent, rules and scheme, such as "DQN, ER, PSER"."""
    game: str
    seed: int
    settings: Mapping[str, Any]
    """By their dotted names, as the table has them."""
    scores: tuple[float, ...]

    @property
    def score(self) -> float:
        """Mean over the episodes."""
        return float(np.mean(self.scores))


def scored_runs(files: Mapping[Path, Sequence[_Row]]) -> list[ScoredRun]:
    """The runs whose phases `files` hold, told apart by game, name, seed and settings.

    Raises:
        ConfigError: a phase is there twice, or a run with two checkpoints.
    """
    episodes: dict[tuple[Any, ...], list[tuple[Path, _Row]]] = {}
    for path, rows in files.items():
        for row in rows:
            run = row["game"], row["run"], row["run_seed"], row["settings"]
            episodes.setdefault(run, []).append((path, row))
    return [_run(own) for own in episodes.values()]


def methods_named(runs: Sequence[ScoredRun]) -> list[str]:
    """A name for each run: its method, and the variant where the runs are of several.

    Raises:
        ConfigError: two runs of one method differ in more than how steps are drawn, in whatever
            games; it says in what.
    """
    families: dict[str, list[ScoredRun]] = {}
    for run in runs:
        families.setdefault(run.method, []).append(run)
    for method, members in families.items():
        check_alike(members, method, budget=True)
    return variant_names(runs)


def by_game(runs: Iterable[ScoredRun], method: str) -> dict[str, list[ScoredRun]]:
    """The runs of one method by game.

    Raises:
        ConfigError: two runs in a game have the same training seed.
    """
    games: dict[str, list[ScoredRun]] = {}
    for run in runs:
        games.setdefault(run.game, []).append(run)
    for game, members in games.items():
        check_seeds(members, f"{method} on {game}")
    return games


def _run(episodes: Sequence[tuple[Path, _Row]]) -> ScoredRun:
    path, first = episodes[0]
    found: dict[tuple[int, int], Path] = {}
    for other, row in episodes:
        if _checkpoint(row) != _checkpoint(first):
            raise ConfigError(
                f"{path} has scores of {_checkpoint(first)} of the run {first['run']}, {other} "
                f"those of {_checkpoint(row)}; name one of them"
            )
        before = found.get((row["phase_seed"], row["episode"]))
        if before is not None:
            raise ConfigError(
                f"{before} and {other} hold the same phase, of seed {row['phase_seed']} and "
                f"{_checkpoint(row)} of the run {row['run']}; leave one out"
            )
        found[row["phase_seed"], row["episode"]] = other
    return ScoredRun(
        f"{first['run']} in {path}",
        first["method"],
        first["game"],
        first["run_seed"],
        json.loads(first["settings"]),
        tuple(row["score"] for _, row in episodes),
    )


def _checkpoint(row: _Row) -> str:
    """Wherever it lies, since the place is as the user has typed it."""
    return f"{Path(row['checkpoint']).name} after {row['training_steps']:,} steps"
