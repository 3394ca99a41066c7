"""Whose settings a command line is checked by."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.agent_choice import agent_kind
from storage.errors import ConfigError


def test_the_command_line_wins_over_the_last_file(tmp_path: Path) -> None:
    one, other, none = (tmp_path / name for name in ("a.yaml", "b.yaml", "c.yaml"))
    one.write_text("agent: {kind: naf}\n")
    other.write_text("include: [a.yaml]\nseed: 1\n")
    none.write_text("seed: 2\n")
    assert agent_kind([], []) == agent_kind([none], []) == "vracer"
    assert agent_kind([one, none], []) == agent_kind([other], []) == "naf"
    assert agent_kind([one], ["--agent.kind=dqn"]) == "dqn"


def test_a_resumed_run_keeps_its_agent(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("agent: {kind: ddpg}\n")
    resume = f"--resume={tmp_path}"
    assert agent_kind([], [resume]) == agent_kind([], [resume, "--agent.kind=ddpg"]) == "ddpg"
    with pytest.raises(ConfigError, match="trains 'ddpg': a resumed run keeps its agent"):
        agent_kind([], [resume, "--agent.kind=naf"])
