"""Runs of one method, which differ by their seed alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import storage
from pipeline.episode_order import in_order_of_end, whole_returns
from pipeline.flat_settings import flat_settings
from pipeline.method_name import method_name
from pipeline.protocol.bins import TrainingReturns
from pipeline.protocol.method_settings import check_alike, check_seeds, variant_names
from pipeline.run_folder import RunFolder
from storage.errors import ConfigError

__all__ = ["Method", "TrainedRun", "methods_of"]


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
    def where(self) -> str:
        """Its folder, for messages."""
        return str(self.folder.path)

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
    """Agent, rules and scheme, and the variant where there are several."""
    runs: tuple[TrainedRun, ...]

    @property
    def seeds(self) -> list[int]:
        """Of the runs, in their order."""
        return [run.seed for run in self.runs]


def methods_of(runs: Iterable[TrainedRun]) -> list[Method]:
    """The runs by environment and method, in the order in which they are first named.

    Runs of a method that differ in how steps are drawn are of several methods, named by that.

    Raises:
        ConfigError: two runs of one method have the same seed, or differ in more; it says in what.
    """
    named = list(runs)
    families: dict[tuple[str, str], list[TrainedRun]] = {}
    groups: dict[tuple[str, str], list[TrainedRun]] = {}
    for run, variant in zip(named, variant_names(named), strict=True):
        families.setdefault((run.environment, run.method), []).append(run)
        groups.setdefault((run.environment, variant), []).append(run)
    for (environment, method), members in families.items():
        check_alike(members, f"{method} on {environment}")
    for (environment, variant), members in groups.items():
        check_seeds(members, f"{variant} on {environment}")
    return [Method(*key, tuple(members)) for key, members in groups.items()]
