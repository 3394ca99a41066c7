"""How often commands make the environment: once to look at it, and once to act in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import collect, train
from tests.pipeline.conftest import small
from tests.training.zoo import Drift

MADE: list[None] = []


class Counted(Drift):
    """Counts how often it is made."""

    def __init__(self) -> None:
        super().__init__()
        MADE.append(None)


def made_by(verb, *words: str) -> int:
    MADE.clear()
    assert verb.main(list(words)) == 0
    return len(MADE)


def test_a_run_looks_at_its_environment_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    where = f"--environment.id={__name__}.Counted"
    options = small(where, "--name=a", "--loop.lanes=2", "--loop.steps=300")
    assert made_by(train, *options, "--print_config") == 1
    assert made_by(train, *options) == 1 + 2 + 1  # lanes, and one for evaluations
    assert made_by(train, "--resume", "runs/a", "--loop.steps=400") == 1 + 2 + 1
    offline = small("--name=b", "--loop.steps=60", "--evaluation.episodes=0", where)
    assert made_by(train, *offline, "--offline=runs/a/store") == 1
    words = (f"{__name__}.Counted", "--store=c.store", "--steps=20", "--lanes=3")
    assert made_by(collect, *words) == 1 + 3
