"""A setting of one agent beside another agent's name: the message leads to where it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.train import main
from storage.errors import ConfigError


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("task.yaml").write_text("environment: {id: Hopper-v5}\n")
    Path("naf.yaml").write_text("agent: {kind: naf, diagonal: exp, stdev: 0.1}\n")
    Path("ddpg.yaml").write_text("agent: {kind: ddpg, order: sequential}\n")
    Path("mine.yaml").write_text("include: [task.yaml, naf.yaml]\nname: mine\n")
    Path("outer.yaml").write_text("include: [mine.yaml]\n")
    Path("own.yaml").write_text("include: [naf.yaml]\nagent: {network: cnn, padding: 1}\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "mine.yaml --agent.kind=ddpg",
            (
                "naf.yaml (included: mine.yaml → naf.yaml) has agent.diagonal of agent naf, but "
                "agent.kind is 'ddpg' (by --agent.kind=ddpg): take naf.yaml out of the include of "
                "mine.yaml, or choose agent.kind naf"
            ),
        ),
        (
            "outer.yaml ddpg.yaml",
            (
                "naf.yaml (included: outer.yaml → mine.yaml → naf.yaml) has agent.diagonal of "
                "agent naf, but agent.kind is 'ddpg' (by ddpg.yaml): take naf.yaml out of the "
                "include of mine.yaml, or choose agent.kind naf"
            ),
        ),
        (
            "task.yaml naf.yaml --agent.kind=vracer",
            (
                "naf.yaml has agent.diagonal, agent.stdev of agent naf, but agent.kind is 'vracer' "
                "(by --agent.kind=vracer): take naf.yaml out of the command line, or choose "
                "agent.kind naf"
            ),
        ),
        (
            "own.yaml",
            (
                "own.yaml has agent.network, agent.padding of agent dqn, but agent.kind is 'naf' "
                "(by naf.yaml): take that out of own.yaml, or choose agent.kind dqn"
            ),
        ),
        (
            "task.yaml --agent.diagonal=exp",
            (
                "--agent.diagonal is a setting of agent naf, but agent.kind is 'vracer' (the "
                "default): leave the option out, or choose the other agent"
            ),
        ),
    ],
)
def test_whose_setting_it_is_and_where_it_comes_from(words: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        main(words.split())
    assert str(caught.value) == message


def test_what_no_agent_has_is_looked_for_among_the_chosen_one_s() -> None:
    Path("naf.yaml").write_text("agent: {kind: naf, diagnal: exp}\n")
    with pytest.raises(ConfigError) as caught:
        main(["mine.yaml"])
    told = "naf.yaml (included: mine.yaml → naf.yaml): there is no setting 'agent.diagnal'"
    assert str(caught.value) == f"{told}, did you mean 'agent.diagonal'?"


def test_an_agent_that_is_not_there_is_told_first() -> None:
    with pytest.raises(ConfigError, match="there is no agent 'nfa'; did you mean naf"):
        main(["mine.yaml", "--agent.kind=nfa"])


def test_what_fits_passes() -> None:
    assert main(["mine.yaml", "--agent.stdev=0.3", "--print_config"]) == 0
    assert main(["task.yaml", "ddpg.yaml", "--agent.refer.c=2", "--print_config"]) == 0
