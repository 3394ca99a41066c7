"""What a run does, in the papers' words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["method_name", "rules_name"]

_RULES: Final = {
    (False, False): "ER",
    (True, False): "ReF-ER-1",
    (False, True): "ReF-ER-2",
    (True, True): "ReF-ER",
}
"""The paper's names, by rules 1 and 2."""
_AGENTS: Final = {"vracer": "V-RACER", "ddpg": "DDPG", "naf": "NAF", "dqn": "DQN"}
_SCHEMES: Final = {"per": "PER", "pser": "PSER"}


def method_name(settings: Mapping[str, Any]) -> str:
    """Agent, rules and scheme of a run's whole settings, such as "DDPG, ER, PER".

    Classes of the user's own go by their names.
    """
    kind = settings["agent"]["kind"]
    return f"{_AGENTS.get(kind, _bare(kind))}, {rules_name(settings)}"


def rules_name(settings: Mapping[str, Any]) -> str:
    """The paper's name of the rules, and the scheme where it is not uniform: "ER, PSER"."""
    refer, scheme = settings["agent"]["refer"], settings["replay"]["scheme"]
    named = _RULES[refer["rule_1"], refer["rule_2"]]
    return named if scheme == "uniform" else f"{named}, {_SCHEMES.get(scheme, _bare(scheme))}"


def _bare(class_path: str) -> str:
    return class_path.replace(":", ".").rpartition(".")[2]
