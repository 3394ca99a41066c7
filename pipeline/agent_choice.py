"""Which agent a run's files and options name: it decides which settings there are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from storage.errors import ConfigError

__all__ = ["agent_kind"]

_OPTION: Final = "--agent.kind="


def agent_kind(files: Sequence[Path], options: Sequence[str]) -> str:
    """The kind that the command line names, else the last file that names one, else the default.

    A resumed run is of the kind that its own settings name.

    Raises:
        ConfigError: another kind than that of the run that is resumed.
    """
    from training.agents.registry import DEFAULT_KIND, kind_of
    from training.config_file import read_mapping

    given = [option.removeprefix(_OPTION) for option in options if option.startswith(_OPTION)]
    resumed = [_resumed(option) for option in options if option.startswith("--resume=")]
    kinds = [DEFAULT_KIND]
    for file in [*files, *resumed]:
        try:
            section = read_mapping(file).get("agent")
        except ConfigError:
            continue  # whoever reads the file says what is wrong with it
        if isinstance(section, dict) and "kind" in section:
            kinds.append(kind_of(section))
    if given and resumed and given[-1] != kinds[-1]:
        raise ConfigError(
            f"agent.kind is {given[-1]!r}, but {resumed[-1]} trains {kinds[-1]!r}: a resumed run "
            "keeps its agent; start a new run for another"
        )
    return given[-1] if given else kinds[-1]


def _resumed(option: str) -> Path:
    return Path(option.removeprefix("--resume=")) / "config.yaml"
