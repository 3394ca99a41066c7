"""From which checkpoint a run goes on, and whether its settings are still those of the run."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pipeline.quoting import quote
from pipeline.run_folder import RunFolder
from storage.errors import CheckpointError, ConfigError
from training.setting_aside import free_name

if TYPE_CHECKING:
    from training.config import RunConfig

__all__ = ["Resumption", "check_changes", "check_settings", "resumption"]

_FROM_HERE_ON: Final = ("loop.steps", "loop.updates_per_step")
"""What may differ when a run is resumed, and changes what follows, but nothing that was learnt."""
_HARMLESS: Final = (
    "loop.durability",
    "loop.sync_episodes",
    "loop.sync_seconds",
    "replay.retention",
    "replay.page_limit",
    "evaluation",
    "logging",
    "checkpoint",
)
"""What may differ, too, and changes nothing that is learnt; anything else makes another run."""


@dataclass(frozen=True, slots=True)
class Resumption:
    """Where a run goes on."""

    checkpoint: Path
    content: dict[str, Any]
    damaged: tuple[Path, ...] = ()
    """Newer checkpoints that cannot be read, to be set aside."""

    @property
    def steps(self) -> int:
        """Where the checkpoint stands, in what the budget counts."""
        from training.checkpoints.checkpoint_file import AGENT_KEY

        return int(self.content[AGENT_KEY]["counters"]["environment_steps"])


def resumption(folder: RunFolder) -> Resumption:
    """The newest checkpoint that can be read: last.ckpt, the one before it, or best.ckpt.

    Warns where it is not the first. Any of them is as good: each holds the whole state, and what
    the store has behind it is set aside.

    Raises:
        CheckpointError: the run has none, or none can be read.
    """
    from training.checkpoints.checkpoint_file import read_checkpoint

    kept = (folder.last_checkpoint, folder.previous_checkpoint, folder.best_checkpoint)
    if not any(map(os.path.lexists, kept)):
        raise _no_checkpoint(folder)
    reasons: list[str] = []
    damaged: list[Path] = []
    for path in kept:
        there = os.path.lexists(path)
        if not there and path != folder.last_checkpoint:
            continue
        try:
            found = Resumption(path, read_checkpoint(path), tuple(damaged))
        except CheckpointError as error:
            reasons.append(str(error).partition("; use")[0].partition(": use")[0])
            damaged += [path] if there else []
            continue
        if reasons:
            _warn(folder, found, "; and ".join(reasons))
        return found
    raise CheckpointError(f"{'; and '.join(reasons)}. {_other_ways(folder)}")


def _warn(folder: RunFolder, found: Resumption, reason: str) -> None:
    """Says which older checkpoint the run goes on from, and what becomes of the damaged ones."""
    is_previous = found.checkpoint == folder.previous_checkpoint
    which = "the one before it" if is_previous else "the best evaluation's"
    text = f"{reason}: going on from {which}, {found.checkpoint}, at step {found.steps:,}"
    for path in found.damaged:
        text += f"; {path} is kept as {free_name(path).name}"
    warnings.warn(text, stacklevel=3)


def check_changes(before: RunConfig, after: RunConfig) -> None:
    """Refuses a command line that would make a resumed run another run.

    Raises:
        ConfigError: naming the settings.
    """
    refused = [name for name, _, _ in _differing(before, after)]
    if refused:
        raise ConfigError(
            f"a resumed run cannot change {', '.join(refused)}. What may differ: "
            f"{' and '.join(_FROM_HERE_ON)}, which hold from here on, and what does not change the "
            f"learning ({', '.join(_HARMLESS)}). Start a new run for anything else."
        )


def check_settings(folder: RunFolder, config: RunConfig, found: Resumption) -> None:
    """Refuses a run whose config.yaml was changed since the checkpoint.

    Raises:
        ConfigError: naming the settings and both values.
        CheckpointError: the checkpoint's settings are those of no run.
    """
    from training.checkpoints.checkpoint_file import AGENT_KEY
    from training.config import RunConfig
    from training.config_file import from_mapping

    kind = found.content[AGENT_KEY]["config"]["agent"]["kind"]
    if kind != config.agent.kind:  # the class of another agent is not even looked at
        raise ConfigError(
            f"{folder.config} says agent.kind {config.agent.kind!r}, but {found.checkpoint} holds "
            f"{kind[:200]!r}; put the old value back, or start a new run"
        )
    try:
        kept = from_mapping(RunConfig, found.content[AGENT_KEY]["config"])
    except ConfigError as error:
        raise CheckpointError(
            f"{found.checkpoint} holds settings that no run has: {error}"
        ) from error
    changed = [f"{name} is {new!r}, was {old!r}" for name, old, new in _differing(kept, config)]
    if changed:
        raise ConfigError(
            f"{folder.config} was changed since {found.checkpoint} was written: "
            f"{'; '.join(changed)}. Put the old values back, or start a new run"
        )


def _differing(before: RunConfig, after: RunConfig) -> list[tuple[str, Any, Any]]:
    """Settings that differ and may not, with both values."""
    from training.config_file import to_mapping

    old, new = _flat(to_mapping(before)), _flat(to_mapping(after))
    return [
        (name, old.get(name), new.get(name))
        for name in [*new, *(old.keys() - new.keys())]
        if new.get(name) != old.get(name) and not _may_differ(name)
    ]


def _may_differ(name: str) -> bool:
    """Whether the setting, or the section that it is in, may be another one from here on."""
    section = name.partition(".")[0]
    return not {name, section}.isdisjoint((*_FROM_HERE_ON, *_HARMLESS))


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        inner = _flat(value, f"{prefix}{key}.") if isinstance(value, dict) and value else None
        flat |= {f"{prefix}{key}": value} if inner is None else inner
    return flat


def _no_checkpoint(folder: RunFolder) -> CheckpointError:
    runs = "" if folder.path.parent == Path("runs") else f" --runs={quote(folder.path.parent)}"
    remedy = (
        f"It took no step, so start it again by `sharpwave train {quote(folder.config)}{runs}`"
        if folder.never_began()
        else _other_ways(folder)
    )
    return CheckpointError(
        f"{folder.path} cannot be resumed: {folder.last_checkpoint} does not exist. {remedy}"
    )


def _other_ways(folder: RunFolder) -> str:
    if folder.holds_steps():
        return f"Learn from its steps by --offline {quote(folder.store)}, under another --name"
    return "Start it again under another --name"
