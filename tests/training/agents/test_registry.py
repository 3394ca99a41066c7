"""Agents by kind and by class path, and what is refused of them."""

from __future__ import annotations

import sys

import pytest

from storage.errors import ConfigError
from training.agents.registry import KINDS, agent_class, config_class, refuse_unknown_code

MODULE = """
from dataclasses import dataclass

from training.agents.dqn.agent import Dqn
from training.agents.dqn.config import DqnConfig


@dataclass(frozen=True, slots=True)
class MyConfig(DqnConfig):
    kind: str = "own_agents.Mine"


class Mine(Dqn):
    settings = MyConfig


class Heir(Dqn):
    pass


class Bare(Dqn):
    settings = None


class Wrong(Dqn):
    settings = dict


class NoAgent:
    pass
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "own_agents.py").write_text(MODULE)
    (tmp_path / "leaving.py").write_text("raise SystemExit(7)\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "own_agents"
    sys.modules.pop("own_agents", None)


def test_every_kind_has_the_settings_of_its_agent():
    for kind in KINDS:
        settings = config_class(kind)
        assert agent_class(kind).settings is settings
        assert settings().kind == kind


def test_an_agent_of_ones_own(module):
    assert config_class(f"{module}.Mine").__name__ == "MyConfig"
    assert agent_class(f"{module}:Mine").__name__ == "Mine"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("vracr", r"no agent 'vracr'; did you mean vracer\? Choose one of ddpg, dqn, naf, vracer"),
        ("nowhere.Agent", "cannot be imported .ModuleNotFoundError"),
        ("leaving.Agent", "cannot be imported .SystemExit: 7"),
        ("own_agents.Missing", "cannot be imported .AttributeError"),
        ("own_agents.NoAgent", "name a class that extends training.agent.ReplayAgent"),
        ("own_agents.Bare", "whose settings are None; make them a frozen dataclass"),
        (
            "own_agents.Heir",
            'those of agent dqn; give it a config class of its own, .* = "own_agents.Heir"`',
        ),
        ("own_agents.Wrong", "whose settings are <class 'dict'>; make them a frozen dataclass"),
    ],
)
def test_what_is_no_agent(module, name, message):
    with pytest.raises(ConfigError, match=message):
        config_class(name)


def test_code_that_only_a_checkpoint_names_is_not_imported(module):
    with pytest.raises(ConfigError, match=r"which is code, .*say --trust=own_agents.Mine"):
        refuse_unknown_code("own_agents.Mine", "last.ckpt")
    assert module not in sys.modules
    refuse_unknown_code("own_agents.Mine", "last.ckpt", ["own_agents.Mine"])
    agent_class("own_agents.Mine")
    refuse_unknown_code("own_agents.Mine", "last.ckpt")  # somebody has imported it
