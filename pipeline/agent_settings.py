"""Settings of one agent where another one was chosen: where they come from, and what to do."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from storage.errors import ConfigError

if TYPE_CHECKING:
    from training.settings_files import SettingsFile

__all__ = ["check_agent_settings"]

_KIND: Final = "--agent.kind="


def check_agent_settings(files: Sequence[Path], options: Sequence[str], kind: str) -> None:
    """Refuses settings that `kind` lacks and another agent has; what nobody has is not its concern.

    Raises:
        ConfigError: naming the settings, the file or option that they come from, what chose the
            agent, and what to leave out.
    """
    parts = list(_parts(files))
    owners = {other: _names(other) for other in _known(parts)} | {kind: _names(kind)}
    chosen = _chosen_by(parts, options, kind)
    for part in parts:
        section = _section(part)
        strange = {name: _owner(name, owners) for name in section if name not in owners[kind]}
        mine = [name for name, owner in strange.items() if owner]
        if mine:
            owner = section["kind"] if section.get("kind") in owners else strange[mine[0]]
            raise ConfigError(
                f"{part.told} has {_listed(mine)} of agent {owner}, but agent.kind is {kind!r} "
                f"({chosen}): {_way_out(part, owner, kind)}"
            )
    for option in options:
        name = option.partition("=")[0].removeprefix("--agent.").partition(".")[0].rstrip("+")
        if option.startswith("--agent.") and name not in owners[kind] and _owner(name, owners):
            raise ConfigError(
                f"--agent.{name} is a setting of agent {_owner(name, owners)}, but agent.kind is "
                f"{kind!r} ({chosen}): leave the option out, or choose the other agent"
            )


def _way_out(part: SettingsFile, owner: str, kind: str) -> str:
    if _section(part).get("kind", kind) == kind:
        return f"take that out of {part.path}, or choose agent.kind {owner}"
    where = f"the include of {part.chain[-1]}" if part.chain else "the command line"
    return f"take {part.path} out of {where}, or choose agent.kind {owner}"


def _chosen_by(parts: Sequence[SettingsFile], options: Sequence[str], kind: str) -> str:
    """What names the agent's kind."""
    if any(option.startswith(_KIND) for option in options):
        return f"by {_KIND}{kind}"
    resumed = [option for option in options if option.startswith("--resume=")]
    if resumed:
        return f"by {Path(resumed[-1].removeprefix('--resume=')) / 'config.yaml'}"
    named = [part.path for part in parts if "kind" in _section(part)]
    return f"by {named[-1]}" if named else "the default"


def _parts(files: Sequence[Path]) -> Iterator[SettingsFile]:
    """The files and what they include; one that cannot be read is told of by whoever reads it."""
    from training.settings_files import files_of

    for file in files:
        try:
            yield from files_of(file)
        except ConfigError:
            continue


def _section(part: SettingsFile) -> dict[str, Any]:
    found = part.values.get("agent")
    return found if isinstance(found, dict) else {}


def _known(parts: Sequence[SettingsFile]) -> list[str]:
    """Sharpwave's agents, and those of the user's own that a file names."""
    from training.agents.registry import KINDS

    named = [_section(part).get("kind") for part in parts]
    return list(dict.fromkeys([*(each for each in named if isinstance(each, str)), *KINDS]))


def _names(kind: str) -> set[str]:
    """The agent's settings; none where the agent cannot be had."""
    from training.agents.registry import config_class

    try:
        return {each.name for each in dataclasses.fields(config_class(kind))}
    except ConfigError:
        return set()


def _owner(name: str, owners: dict[str, set[str]]) -> str:
    return next((kind for kind, names in owners.items() if name in names), "")


def _listed(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(f"agent.{name}" for name in names[:most]) + more
