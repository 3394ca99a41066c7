"""What a run's config.yaml tells of its replay, read without any code that learns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from storage.errors import ConfigError
from storage.replay.schemes.priority_settings import PrioritySettings

__all__ = ["StoredRun"]


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run by its folder; settings that cannot be read are as if they were not there."""

    folder: Path
    replay: Mapping[str, Any]
    """The section `replay`."""
    priorities: PrioritySettings

    @classmethod
    def at(cls, path: Path) -> StoredRun | None:
        """The run whose folder or own store is at `path`; None where no config.yaml is."""
        folder = path.parent if path.name == "store" else path
        config = folder / "config.yaml"
        if not config.is_file():
            return None
        replay = _section(config)
        try:
            return cls(folder, replay, PrioritySettings(**replay.get("priorities", {})))
        except (ConfigError, TypeError):
            return cls(folder, {}, PrioritySettings())

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.resolve().name

    @property
    def store(self) -> Path | None:
        """The store that it learns from; None where it has its own."""
        named = self.replay.get("store")
        return Path(named) if isinstance(named, str) else None

    @property
    def window(self) -> int | None:
        """Steps of the newest whole episodes that it draws from; None where others stay, too."""
        window = self.replay.get("window")
        newest = self.replay.get("forget", "oldest") == "oldest"
        return window if newest and isinstance(window, int) else None

    def draws_from(self, overlay: str) -> bool:
        """Whether it draws by the priorities of that overlay."""
        prioritized = self.replay.get("scheme", "uniform") != "uniform"
        return prioritized and self.replay.get("overlay") == overlay


def _section(config: Path) -> Mapping[str, Any]:
    try:
        values = yaml.safe_load(config.read_text(encoding="utf-8"))
        section = values["replay"]
    except (OSError, UnicodeDecodeError, yaml.YAMLError, LookupError, TypeError, ValueError):
        return {}
    return section if isinstance(section, dict) else {}
