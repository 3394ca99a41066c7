"""Where a run keeps its things."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pipeline.nearest import nearest
from storage.errors import ConfigError

__all__ = ["RunFolder"]

_RULES: Final = {
    (False, False): "ER",
    (True, False): "ReF-ER-1",
    (False, True): "ReF-ER-2",
    (True, True): "ReF-ER",
}
"""The paper's names, by rules 1 and 2."""


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
        siblings = [p.parent.name for p in path.parent.glob("*/config.yaml")]
        hint = nearest(path.name, siblings)
        known = f"; {path.parent} holds {', '.join(sorted(siblings))}" if siblings else ""
        raise ConfigError(f"{path} is no run: it has no config.yaml{hint}{known}")

    @classmethod
    def unused(cls, path: Path) -> RunFolder:
        """A run that may begin at `path`; raises `ConfigError` where something is already."""
        if path.exists():
            remedy = (
                f"go on with it by `sharpwave train --resume {path}`, or choose another --name"
                if cls(path).config.exists()
                else "choose another --name"
            )
            raise ConfigError(f"{path} exists already: {remedy}")
        return cls(path)

    def settings(self) -> dict[str, Any]:
        """The run's resolved settings, as config.yaml has them."""
        import yaml

        kept: dict[str, Any] = yaml.safe_load(self.config.read_text(encoding="utf-8"))
        return kept

    def rules(self) -> str:
        """The paper's name of the run's remember-and-forget rules."""
        refer = self.settings()["agent"]["refer"]
        return _RULES[refer["rule_1"], refer["rule_2"]]

    def title(self) -> str:
        """Environment, rules and name of the run, for a picture."""
        kept = self.settings()
        return f"{kept['environment']['id']}: V-RACER, {self.rules()} ({kept['name']})"

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
