"""Files of settings that include one another: what each says, and what all of them make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from storage.errors import ConfigError
from training.setting_checks import shown
from training.settings_yaml import read_file

__all__ = ["SettingsFile", "files_of", "merged", "read_mapping"]

_KEY: Final = "include"


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """What one file says by itself; settings that it includes are another one's."""

    path: Path
    """As the user, or the file that includes it, has led there."""
    values: dict[str, Any]
    chain: tuple[Path, ...] = ()
    """The files that led here, the outermost first."""

    @property
    def told(self) -> str:
        """The file, for messages, and how it came to be read where others included it."""
        return f"{self.path}{_included_by(self.chain, self.path)}"


def read_mapping(path: Path) -> dict[str, Any]:
    """What a YAML file and those that it includes make together.

    The top-level key ``include`` is a list of paths, relative to the file that holds it. They are
    merged in their order before what the file says itself: mappings key by key, anything else
    whole, and whatever comes later wins. An included file counts with all that it includes.

    Raises:
        ConfigError: a file is missing, cannot be read, is no YAML or no mapping, or includes itself
            by way of others; where it was included, the message names who did that.
    """
    return merged(each.values for each in files_of(path))


def files_of(path: Path) -> list[SettingsFile]:
    """The file and those that it includes, in the order of merging: it comes last.

    Raises:
        ConfigError: as of `read_mapping`.
    """
    return _files(path, ())


def merged(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Mappings merged key by key, at every depth; of other values the last one holds."""
    whole: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            if isinstance(value, Mapping):
                below = whole.get(key)
                whole[key] = merged([below if isinstance(below, Mapping) else {}, value])
            else:
                whole[key] = value
    return whole


def _files(path: Path, above: tuple[Path, ...]) -> list[SettingsFile]:
    """`above` are the files that lead here, the outermost first."""
    chain = (*above, path)
    if path.resolve() in [each.resolve() for each in above]:
        raise ConfigError(f"{path} includes itself: {_arrows(chain)}; take one `{_KEY}` out")
    try:
        values = read_file(path)
    except ConfigError as error:
        if not above:
            raise
        raise ConfigError(f"{error}{_included_by(above, path)}") from error
    included = _included(path, values.pop(_KEY, []))
    below = [each for other in included for each in _files(other, chain)]
    return [*below, SettingsFile(path, values, above)]


def _included(path: Path, named: Any) -> list[Path]:
    if not isinstance(named, list) or not all(isinstance(name, str) and name for name in named):
        raise ConfigError(
            f"{path}: {_KEY} is {shown(named)}; it must be a list of paths relative to this file, "
            "as [er.yaml]"
        )
    return [path.parent / name for name in named]


def _included_by(above: tuple[Path, ...], path: Path) -> str:
    return f" (included: {_arrows((*above, path))})" if above else ""


def _arrows(chain: Iterable[Path]) -> str:
    return " → ".join(map(str, chain))
