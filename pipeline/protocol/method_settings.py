"""In what the runs of one method may differ, and what the variants of a method are called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, Final, Protocol

from storage.errors import ConfigError

__all__ = ["FREE", "MethodRun", "check_alike", "check_seeds", "differing", "variant_names"]

FREE: Final = (
    *("name", "seed", "loop.threads", "loop.accelerator", "loop.durability", "loop.sync_"),
    *("loop.round_steps", "replay.overlay", "replay.retention", "replay.page_limit"),
    *("agent.engine", "agent.acting_interval", "evaluation.", "logging.", "checkpoint."),
)
"""Settings in which the runs of a method may differ: they change no expected return."""
_STEPS: Final = "loop.steps"
_DRAWS: Final = ("replay.scheme", "replay.priorities.", "replay.sequences.")
"""Settings that make a variant of a method."""
_OPTIONAL: Final = "environment.kwargs."
"""Settings that a run may have, or leave to the environment."""


class MethodRun(Protocol):
    """A run by what it is compared by."""

    @property
    def where(self) -> str:
        """Its place, for messages."""
        ...

    @property
    def method(self) -> str:
        """Agent, rules and scheme, such as "DDPG, ReF-ER"."""
        ...

    @property
    def seed(self) -> int:
        """Of all its random streams."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """By their dotted names, defaults included."""
        ...


def differing(runs: Iterable[MethodRun], *, budget: bool = False) -> list[str]:
    """The settings in which any of the runs differ, but those that a method's runs may.

    What plays no role in a run, as priorities in uniform draws, is not compared with others. With
    `budget` steps of training count, as they do for the policy at their end.
    """
    return _varying([_compared(run.settings, budget) for run in runs])


def variant_names(runs: Sequence[MethodRun]) -> list[str]:
    """A name for each run: its method, and in what its draws differ from the method's other runs.

    Such as "DQN, ER, PSER, replay.sequences.mode=add"; the method alone where nothing differs.
    """
    told = [_compared(run.settings, budget=False) for run in runs]
    members: dict[str, list[dict[str, str]]] = {}
    for run, own in zip(runs, told, strict=True):
        members.setdefault(run.method, []).append(own)
    varying = {
        method: [name for name in _varying(each) if name.startswith(_DRAWS)]
        for method, each in members.items()
    }
    return [
        ", ".join(
            [
                run.method,
                *(
                    f"{name}={_shown(run.settings[name])}"
                    for name in varying[run.method]
                    if name in own
                ),
            ]
        )
        for run, own in zip(runs, told, strict=True)
    ]


def check_alike(runs: Sequence[MethodRun], what: str, *, budget: bool = False) -> None:
    """Refuses runs of one method that differ in more than their seed and how steps are drawn.

    Raises:
        ConfigError: naming two such runs, `what` both are, and each setting with its values.
    """
    told = [_compared(run.settings, budget) for run in runs]
    for (first, one), (second, other) in combinations(zip(runs, told, strict=True), 2):
        if one == other:
            continue
        names = [name for name in _varying([one, other]) if not name.startswith(_DRAWS)]
        if names:
            listed = ", ".join(
                f"{name} ({_value(first, name)} and {_value(second, name)})" for name in names
            )
            raise ConfigError(
                f"{first.where} and {second.where} are both {what}, but differ in {listed}; name "
                "runs that differ by their seed alone, or in how steps are drawn (replay.scheme, "
                "replay.priorities, replay.sequences)"
            )


def check_seeds(runs: Iterable[MethodRun], what: str) -> None:
    """Refuses two runs with one seed: they are no two samples of what a method comes to.

    Raises:
        ConfigError: naming both, and `what` they are.
    """
    found: dict[int, MethodRun] = {}
    for run in runs:
        first = found.setdefault(run.seed, run)
        if first is not run:
            raise ConfigError(
                f"{first.where} and {run.where} are both {what} with seed {run.seed}; leave one out"
            )


def _compared(settings: Mapping[str, Any], budget: bool) -> dict[str, str]:
    """The settings that count, as texts."""
    return {
        name: repr(value)
        for name, value in settings.items()
        if not name.startswith(FREE) and _plays(name, settings, budget)
    }


def _varying(told: Sequence[Mapping[str, str]]) -> list[str]:
    names = dict.fromkeys(name for each in told for name in each)
    return [name for name in names if _varies(name, told)]


def _varies(name: str, told: Sequence[Mapping[str, str]]) -> bool:
    values = {each[name] for each in told if name in each}
    left_out = name.startswith(_OPTIONAL) and any(name not in each for each in told)
    return len(values) + left_out > 1


def _plays(name: str, settings: Mapping[str, Any], budget: bool) -> bool:
    """Whether a setting plays a role in the run."""
    if name == _STEPS:
        return budget or _open_schedule(settings)
    scheme = settings["replay.scheme"]
    if name.startswith("replay.sequences."):
        return scheme not in ("uniform", "per")
    if name == "replay.priorities.beta_draws":
        return _moving_weights(settings)
    return scheme != "uniform" or not name.startswith("replay.priorities.")


def _moving_weights(settings: Mapping[str, Any]) -> bool:
    """Whether the exponent of the sampling weights changes while the run learns."""
    first, last = (settings[f"replay.priorities.{name}"] for name in ("beta", "beta_final"))
    return settings["replay.scheme"] != "uniform" and bool(first != last)


def _open_schedule(settings: Mapping[str, Any]) -> bool:
    """Whether the weights' exponent follows the budget: it is to end with the run's updates."""
    return _moving_weights(settings) and settings["replay.priorities.beta_draws"] is None


def _value(run: MethodRun, name: str) -> Any:
    return run.settings.get(name, "left out")


def _shown(value: Any) -> str:
    """A value as settings files have it."""
    named = {None: "null", True: "true", False: "false"}
    return named[value] if value is None or isinstance(value, bool) else str(value)
