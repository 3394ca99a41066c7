"""Where a run keeps its things."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import storage
from pipeline.held_folder import held_folder
from pipeline.method_name import method_name, rules_name
from pipeline.nearest import nearest
from pipeline.quoting import quote
from storage.errors import ConfigError, SharpwaveError

__all__ = ["RunFolder"]

_SECTIONS: Final = ("environment", "agent", "loop")
"""What every run's settings have; without them, defaults would stand for what was lost."""
_BEFORE_STEPS: Final = ("store", "checkpoints", "overlays", "tensorboard")
"""Folders that a run makes before its first step, besides config.yaml."""
_LEFTOVER: Final = re.compile(r"(config\.yaml|metrics\.csv)\.\d+\.\d+|\.store\.\d+\.creating")
"""What a kill leaves of a file, or of a store, that was being made."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """runs/NAME/{config.yaml, store/, checkpoints/, metrics.csv, tensorboard/, curve.png}."""

    path: Path

    @classmethod
    def existing(cls, path: Path) -> RunFolder:
        """The run at `path`; raises `ConfigError` where none is, with the nearest neighbour."""
        folder = cls(path)
        if folder.config.is_file():
            return folder
        if folder.never_began():
            raise ConfigError(
                f"{path} is no run yet: it was stopped before it had written its config.yaml, and "
                "took no step; start it again by the command that made it"
            )
        siblings = [p.parent.name for p in path.parent.glob("*/config.yaml")]
        hint = nearest(path.name, siblings)
        known = f"; {path.parent} holds {', '.join(sorted(siblings))}" if siblings else ""
        raise ConfigError(f"{path} is no run: it has no config.yaml{hint}{known}")

    @classmethod
    def unused(cls, path: Path) -> RunFolder:
        """A run that may begin at `path`; raises `ConfigError` where something is already.

        What a run left that failed before its first checkpoint and its first step is nothing.
        """
        folder = cls(path)
        if not path.exists() or folder.never_began():
            return folder
        kept = (folder.last_checkpoint, folder.previous_checkpoint, folder.best_checkpoint)
        if any(each.is_file() for each in kept):
            resume = f"`sharpwave train --resume {quote(path)}`"
            remedy = f"go on with it by {resume}, or choose another --name"
        elif folder.holds_steps():
            remedy = (
                f"it has no checkpoint to go on from, but {folder.store} holds steps: learn from "
                f"them by --offline {quote(folder.store)}, and choose another --name"
            )
        else:
            remedy = "choose another --name"
        raise ConfigError(f"{path} exists already: {remedy}")

    def never_began(self) -> bool:
        """Whether the folder holds nothing but what a run leaves that took no step.

        Such a run wrote no checkpoint and no metrics, and its store has no segment. What a kill
        left half made is nothing, either.
        """
        if not self.path.is_dir():
            return False
        names = {each.name for each in self.path.iterdir()} - {self.config.name, *_BEFORE_STEPS}
        if not all(map(_LEFTOVER.fullmatch, names)):
            return False
        if self.checkpoints.is_dir() and any(self.checkpoints.glob("*.ckpt")):
            return False
        return not self.holds_steps()

    def holds_steps(self) -> bool:
        """Whether there is a store with a segment, or a damaged one, which may have some."""
        files = (each for each in self.store.rglob("*") if each.is_symlink() or not each.is_dir())
        if not self.store.is_symlink() and next(files, None) is None:
            return False
        try:
            with storage.open(self.store) as store:
                return bool(store.segments)
        except SharpwaveError:
            return True

    def held(self) -> AbstractContextManager[None]:
        """The folder, made where it is not there, and held against other processes.

        Raises:
            ConfigError: another process trains in it.
        """
        return held_folder(
            self.path,
            f"another process is training in {self.path}: let it finish or stop it, or choose "
            "another --name",
        )

    def clear(self) -> None:
        """Removes what a run left that never began; the folder must be held."""
        if self.never_began():
            for each in self.path.iterdir():
                if each.is_dir() and not each.is_symlink():
                    shutil.rmtree(each, ignore_errors=True)
                elif each != self.config:
                    each.unlink()

    def discard_empty(self) -> None:
        """Removes the folder where nothing was written into it."""
        with suppress(OSError):
            self.path.rmdir()

    def settings(self) -> dict[str, Any]:
        """The run's resolved settings, as config.yaml has them, and defaults for those it lacks.

        Raises:
            ConfigError: the file is damaged.
        """
        from training.config import RunConfig
        from training.config_file import from_mapping, read_mapping, to_mapping

        try:
            kept = read_mapping(self.config)
            _check_sections(kept)
            return to_mapping(from_mapping(RunConfig, kept))
        except ConfigError as error:
            raise ConfigError(
                f"{self.config} is damaged: {error}. Write it anew from the command line that "
                "made the run, or leave the run out"
            ) from error

    def rules(self) -> str:
        """The paper's name of the rules, and the scheme where it is not uniform: "ER, PSER"."""
        return rules_name(self.settings())

    def title(self) -> str:
        """Environment, rules and name of the run, for a picture."""
        kept = self.settings()
        return f"{kept['environment']['id']}: {method_name(kept)} ({kept['name']})"

    @property
    def config(self) -> Path:
        """The resolved settings, sufficient to repeat the run."""
        return self.path / "config.yaml"

    @property
    def store(self) -> Path:
        """The run's own steps."""
        return self.path / "store"

    @property
    def checkpoints(self) -> Path:
        """What `--resume` and `evaluate` read."""
        return self.path / "checkpoints"

    @property
    def last_checkpoint(self) -> Path:
        """Where the run goes on from."""
        return self.checkpoints / "last.ckpt"

    @property
    def previous_checkpoint(self) -> Path:
        """Where it goes on from when `last_checkpoint` is damaged."""
        return self.checkpoints / "previous.ckpt"

    @property
    def best_checkpoint(self) -> Path:
        """That of the best evaluation: where it goes on from when both others are damaged."""
        return self.checkpoints / "best.ckpt"

    @property
    def metrics(self) -> Path:
        """One line every few rounds."""
        return self.path / "metrics.csv"

    @property
    def tensorboard(self) -> Path:
        """The same numbers for TensorBoard."""
        return self.path / "tensorboard"

    @property
    def curve(self) -> Path:
        """The learning curve as a picture."""
        return self.path / "curve.png"


def _check_sections(kept: Mapping[str, Any]) -> None:
    lost = [name for name in _SECTIONS if name not in kept]
    if lost:
        raise ConfigError(f"it lacks {', '.join(lost)}")
