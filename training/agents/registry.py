"""The agents by kind; neither torch nor an agent's code is loaded before it is asked for."""

from __future__ import annotations

import dataclasses
import difflib
import sys
from typing import TYPE_CHECKING, Any, Final, cast

from storage.class_path import load_object
from storage.errors import ConfigError
from training.agent_config import AgentConfig

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from training.agent import ReplayAgent

__all__ = ["DEFAULT_KIND", "KINDS", "agent_class", "config_class", "kind_of", "refuse_unknown_code"]

DEFAULT_KIND: Final = "vracer"

_HOMES: Final = {
    "ddpg": ("training.agents.ddpg.config.DdpgConfig", "training.agents.ddpg.agent.Ddpg"),
    "dqn": ("training.agents.dqn.config.DqnConfig", "training.agents.dqn.agent.Dqn"),
    "naf": ("training.agents.naf.config.NafConfig", "training.agents.naf.agent.Naf"),
    "vracer": ("training.agents.vracer.config.VRacerConfig", "training.agents.vracer.agent.VRacer"),
}
"""Class paths of each agent's settings and of the agent itself."""

KINDS: Final = tuple(_HOMES)
"""The agents that come with Sharpwave."""


def kind_of(settings: Mapping[str, Any]) -> str:
    """The kind that an agent's plain settings name, or the default one."""
    kind = settings.get("kind", DEFAULT_KIND)
    if not isinstance(kind, str):
        raise ConfigError(f"agent.kind is {kind!r}; it must be text. {_choices()}")
    return kind


def config_class(kind: str) -> type[AgentConfig]:
    """The class of the settings of an agent.

    Raises:
        ConfigError: there is no such agent (close names are listed), or no agent at that class
            path.

    """
    if kind in _HOMES:
        return cast("type[AgentConfig]", load_object(_HOMES[kind][0]))
    settings: Any = agent_class(kind).settings
    if not (isinstance(settings, type) and issubclass(settings, AgentConfig)):
        raise ConfigError(
            f"agent.kind is {kind}, whose settings are {settings!r}; make them a frozen dataclass "
            "that extends training.agent_config.AgentConfig"
        )
    named = {each.name: each.default for each in dataclasses.fields(settings)}["kind"]
    if named in _HOMES:
        raise ConfigError(
            f"agent.kind is {kind}, whose settings are {settings.__name__}, those of agent "
            f'{named}; give it a config class of its own, with `kind: str = "{kind}"`'
        )
    return settings


def agent_class(kind: str) -> type[ReplayAgent]:
    """The class of an agent.

    Raises:
        ConfigError: as of `config_class`.

    """
    if kind in _HOMES:
        return cast("type[ReplayAgent]", load_object(_HOMES[kind][1]))
    found = _own(kind)
    from training.agent import ReplayAgent

    if not (isinstance(found, type) and issubclass(found, ReplayAgent)):
        raise ConfigError(
            f"agent.kind is {kind}, which is {found!r}; name a class that extends "
            "training.agent.ReplayAgent"
        )
    if not hasattr(found, "settings"):
        raise ConfigError(f"agent.kind is {kind}, which lacks `settings`, the class of its config")
    return found


def refuse_unknown_code(kind: str, where: str, trusted: Container[str] = ()) -> None:
    """Refuses an agent that only a checkpoint names, where making it would import code.

    Args:
        kind: The agent's kind in the checkpoint.
        where: The checkpoint, for the message.
        trusted: Class paths that the user has named.

    Raises:
        ConfigError: saying what to name.

    """
    if kind in _HOMES or kind in trusted or _imported(kind):
        return
    raise ConfigError(
        f"{where} names its agent {kind[:200]!r}, which is code, and nothing that a checkpoint "
        f"names is imported; where you trust it, say --trust={kind[:200]}, or import it before"
    )


def _imported(kind: str) -> bool:
    return kind.replace(":", ".").rpartition(".")[0] in sys.modules


def _own(kind: str) -> Any:
    if not any(mark in kind for mark in ".:"):
        raise ConfigError(f"there is no agent {kind!r}{_hint(kind)} {_choices()}")
    try:
        return load_object(kind)
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"agent.kind is {kind!r}, which cannot be imported ({type(error).__name__}: {error}); "
            "correct the class path, or put its folder on PYTHONPATH"
        ) from error


def _hint(kind: str) -> str:
    close = difflib.get_close_matches(kind.lower(), KINDS, n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else "."


def _choices() -> str:
    return f"Choose one of {', '.join(KINDS)}, or give the class path of your own"
