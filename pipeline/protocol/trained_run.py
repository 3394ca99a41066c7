"""Runs of one method, which differ by their seed alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np

import storage
from pipeline.episode_order import in_order_of_end, whole_returns
from pipeline.flat_settings import flat_settings
from pipeline.method_name import method_name
from pipeline.protocol.bins import TrainingReturns
from pipeline.run_folder import RunFolder
from storage.errors import ConfigError

__all__ = ["Method", "TrainedRun", "differing", "methods_of"]

_FREE: Final = (
    *("name", "seed", "loop.steps", "loop.threads", "loop.accelerator", "loop.durability"),
    *("loop.sync_", "loop.round_steps", "replay.overlay", "replay.retention", "replay.page_limit"),
    *("agent.engine", "agent.acting_interval", "evaluation.", "logging.", "checkpoint."),
)
"""Settings in which the runs of a method may differ: they change no expected return."""


@dataclass(frozen=True, slots=True)
class TrainedRun:
    """A run that has acted, by its settings."""

    folder: RunFolder
    settings: Mapping[str, Any]
    """By their dotted names, defaults included."""
    method: str
    """Agent, rules and scheme, such as "DDPG, ReF-ER"."""

    @classmethod
    def at(cls, path: Path) -> TrainedRun:
        """The run whose folder is at `path`.

        Raises:
            ConfigError: there is none, its settings are damaged, or it learns from a store.
        """
        folder = RunFolder.existing(path)
        kept = folder.settings()
        settings = dict(flat_settings(kept))
        if settings["replay.store"] is not None:
            raise ConfigError(
                f"{path} learnt from {settings['replay.store']} without acting, so it has no "
                "training episodes; leave it out"
            )
        return cls(folder, settings, method_name(kept))

    @property
    def environment(self) -> str:
        """Where it acted."""
        return str(self.settings["environment.id"])

    @property
    def seed(self) -> int:
        """Of all its random streams."""
        return int(self.settings["seed"])

    def returns(self) -> TrainingReturns:
        """Its training episodes; those whose segments it has dropped are known by their tables.

        Raises:
            ConfigError: its store is not there.
            SharpwaveError: the store is damaged.
        """
        path = self.folder.store
        if not path.is_dir():
            raise ConfigError(
                f"{path} is not there, which holds the episodes of {self.folder.path}; put it back "
                "from a copy, or leave the run out"
            )
        with storage.open(path) as store:
            records = in_order_of_end(store, str(self.settings["name"]))
        return TrainingReturns(
            np.cumsum(records["length"], dtype=np.int64),
            whole_returns(records),
            int(self.settings["loop.warmup"]),
        )


@dataclass(frozen=True, slots=True)
class Method:
    """What the protocol takes the mean of: runs of one method in one environment."""

    environment: str
    name: str
    runs: tuple[TrainedRun, ...]

    @property
    def seeds(self) -> list[int]:
        """Of the runs, in their order."""
        return [run.seed for run in self.runs]


def methods_of(runs: Iterable[TrainedRun]) -> list[Method]:
    """The runs by environment and method, in the order in which they are first named.

    Raises:
        ConfigError: two runs of one method have the same seed, or differ in more; it says in what.
    """
    groups: dict[tuple[str, str], list[TrainedRun]] = {}
    for run in runs:
        groups.setdefault((run.environment, run.method), []).append(run)
    for (environment, method), members in groups.items():
        for first, second in combinations(members, 2):
            _check_alike(first, second, f"{method} on {environment}")
    return [Method(*key, tuple(members)) for key, members in groups.items()]


def differing(runs: Sequence[TrainedRun]) -> list[str]:
    """The settings in which any of the runs differ, but those that a method's runs may."""
    return [name for name in runs[0].settings if any(_differ(runs[0], run, name) for run in runs)]


def _check_alike(first: TrainedRun, second: TrainedRun, what: str) -> None:
    pair = f"{first.folder.path} and {second.folder.path}"
    names = differing([first, second])
    if names:
        listed = ", ".join(
            f"{name} ({first.settings[name]} and {second.settings[name]})" for name in names
        )
        raise ConfigError(
            f"{pair} are both {what}, but differ in {listed}; name runs that differ by their seed "
            "alone"
        )
    if first.seed == second.seed:
        raise ConfigError(f"{pair} are both {what} with seed {first.seed}; leave one out")


def _differ(first: TrainedRun, second: TrainedRun, name: str) -> bool:
    both = first.settings, second.settings
    if name.startswith(_FREE) or not all(name in each and _plays(name, each) for each in both):
        return False
    return repr(first.settings[name]) != repr(second.settings[name])


def _plays(name: str, settings: Mapping[str, Any]) -> bool:
    """Whether a setting plays a role under the run's scheme."""
    scheme = settings["replay.scheme"]
    if name.startswith("replay.sequences."):
        return scheme not in ("uniform", "per")
    return scheme != "uniform" or not name.startswith("replay.priorities.")
