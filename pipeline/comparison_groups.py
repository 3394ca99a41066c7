"""Which of several runs belong together: those that differ by their seed alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pipeline.flat_settings import flat_settings
from pipeline.run_folder import RunFolder
from storage.errors import CheckpointError

__all__ = ["RunSettings", "group_names"]

_RULES: Final = "rules"
_IGNORED: Final = (
    *("name", "seed", "environment.id", "agent.refer.rule_1", "agent.refer.rule_2"),
    *("replay.overlay", "replay.scheme", "loop.steps", "evaluation.", "logging.", "checkpoint."),
)
"""What changes neither what is learnt nor how fast, or is told by other words.

A run that goes on for longer is of the same kind as before.
"""
_BY_SCHEME: Final = {
    "priorities.": ("per", "pser"),
    "sequences.": ("pser",),
}
"""Sections of the replay whose settings play a role under these schemes alone."""
_MOST_NAMED: Final = 3
"""Settings in a group's name; where more differ, the runs' own names say it better."""
_LONGEST: Final = 24
"""Characters of a value in a group's name."""
_LONGEST_NAME: Final = 48
"""Characters of a group's name, so that it fits below a panel."""

_Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What decides which runs are compared, and which belong together."""

    name: str
    environment: str
    offline: bool
    """Whether the run learns from a fixed store."""
    seed: int
    values: Mapping[str, Any]
    """What may distinguish runs, by the setting's name without its section.

    Settings that play no role under the run's scheme are not there.
    """

    @classmethod
    def read(cls, run: RunFolder) -> RunSettings:
        """The settings of `run`; of "auto" its engine becomes the one that the run uses."""
        from training.config import EnvironmentConfig, RunConfig
        from training.config_file import to_mapping

        kept = run.settings()
        environment = kept["environment"]["id"]
        defaults = to_mapping(RunConfig(EnvironmentConfig(environment)))
        flat = dict(flat_settings(defaults)) | dict(flat_settings(kept))
        values = {_RULES: run.rules(), "engine": _engine(run, flat["agent.engine"])}
        for name, value in flat.items():
            short = name.partition(".")[2]
            if not name.startswith(_IGNORED) and _plays(short, flat["replay.scheme"]):
                values.setdefault(short, value)
        return cls(
            run.path.name,
            environment,
            flat["replay.store"] is not None,
            kept["seed"],
            values,
        )


def group_names(runs: Sequence[RunSettings]) -> list[str]:
    """A short text for each run, equal for runs that differ in nothing but their seed.

    It has the settings in which runs of the same environment differ, such as "engine=fused"; the
    rules where none does; and the name of the group's first run where too many do.
    """
    names = dict[int, str]()
    for offline in (False, True):
        mine = {i: run for i, run in enumerate(runs) if run.offline == offline}
        names |= _names(mine) if mine else {}
    return [names[i] for i in range(len(runs))]


def _names(runs: Mapping[int, RunSettings]) -> dict[int, str]:
    varying = _varying(runs.values())
    keys = {i: tuple(repr(run.values.get(name)) for name in varying) for i, run in runs.items()}
    texts = {i: _text(run, varying) for i, run in runs.items()}
    members: dict[tuple[str, _Key], list[str]] = {}
    for i, run in runs.items():
        members.setdefault((run.environment, keys[i]), []).append(run.name)
    named = {(run.environment, texts[i]) for i, run in runs.items()}
    short = max(map(len, texts.values())) <= _LONGEST_NAME
    if len(varying) <= _MOST_NAMED and short and len(named) == len(members):
        return texts
    return {i: _named_by_runs(members[run.environment, keys[i]]) for i, run in runs.items()}


def _varying(runs: Collection[RunSettings]) -> list[str]:
    """The settings in which any two runs of one environment differ, or which one lacks.

    Those of a scheme are compared among the runs that draw by it.
    """
    names = dict.fromkeys(name for run in runs for name in run.values)
    environments: dict[str, list[RunSettings]] = {}
    for run in runs:
        environments.setdefault(run.environment, []).append(run)
    return [
        name
        for name in names
        if any(
            len({repr(run.values.get(name)) for run in panel if _told(run, name)}) > 1
            for panel in environments.values()
        )
    ]


def _text(run: RunSettings, varying: Sequence[str]) -> str:
    return ", ".join(
        str(run.values[name]) if name == _RULES else f"{name}={_value(run.values.get(name))}"
        for name in [name for name in varying if _told(run, name)] or [_RULES]
    )


def _told(run: RunSettings, name: str) -> bool:
    """Whether a setting is one of the run's: what it lacks it has not set, but for its scheme's."""
    return name in run.values or not name.startswith(tuple(_BY_SCHEME))


def _plays(name: str, scheme: str) -> bool:
    """Whether a setting plays a role under a scheme."""
    return all(scheme in own for part, own in _BY_SCHEME.items() if name.startswith(part))


def _named_by_runs(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _value(value: Any) -> str:
    """A setting's value in a few characters."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "on", False: "off"}[value]
    if isinstance(value, list):
        parts = [each.get("class_path", each) if isinstance(each, dict) else each for each in value]
        text = "×".join(str(part).rpartition(".")[2] for part in parts) or "none"
    else:
        text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _LONGEST else f"…{text[1 - _LONGEST :]}"


def _engine(run: RunFolder, wish: str) -> str:
    """The engine that the run uses: as asked, or what "auto" came to by its checkpoint.

    Before the first checkpoint, and where it cannot be read, it stays "auto".
    """
    if wish != "auto" or not run.last_checkpoint.is_file():
        return wish
    from training.checkpoints.checkpoint_file import AGENT_KEY, read_checkpoint

    try:
        learning = read_checkpoint(run.last_checkpoint)[AGENT_KEY]["learning"]
    except CheckpointError:
        return wish
    return learning.get("engine") or wish
