"""`sharpwave train` killed and resumed, again and again, against the run that was left alone."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

import storage
from pipeline.train import main
from storage.salvage import salvage
from tests.faults.jobs import train_words
from tests.faults.nursery import Nursery, eventually
from tests.faults.test_stop_at_round_end import state
from tests.training.tiny import differences

STEPS = 2021
"""The last of its rounds is a partial one."""
KINDS = {
    "uniform": ("--loop.lanes=2",),
    "per": ("--replay.scheme=per", "--loop.lanes=2", "--loop.lane_kind=sync", "--loop.steps=2024"),
    "pser": ("--replay.scheme=pser", "--replay.forget=most_far", "--agent.engine=eager"),
    "add": ("--replay.scheme=pser", "--replay.sequences.mode=add", "--agent.refer.rule_1=false"),
    "er": ("--agent.refer.rule_1=false", "--agent.refer.rule_2=false", "--agent.engine=fused"),
    "processes": ("--loop.lanes=2", "--loop.lane_kind=async", "--loop.steps=2024"),
}


def words(kind: str) -> list[str]:
    given = [each for each in train_words(STEPS) if "progress" not in each]
    own = {each.partition("=")[0] for each in KINDS[kind]}
    return [*(each for each in given if each.partition("=")[0] not in own), *KINDS[kind]]


@pytest.mark.parametrize(
    ("kind", "kills"),
    [
        ("uniform", 2),
        ("pser", 2),
        *(pytest.param(kind, 12, marks=pytest.mark.soak) for kind in KINDS),
    ],
)
def test_killed_and_resumed_equals_straight(
    learners: Nursery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, kills: int
) -> None:
    """kill -9 at random instants after a checkpoint was written, so that each sitting gets on."""
    last = tmp_path / "runs/run/checkpoints/last.ckpt"
    chance = random.Random(kills)
    child = learners.command(*words(kind), cwd=tmp_path)
    done = 0
    for _ in range(kills):
        before = written(last)
        eventually(lambda: written(last) != before or not child.alive(), child.said)  # noqa: B023
        time.sleep(chance.random() * 0.1)
        if child.kill() == 0:
            break
        done += 1
        child = learners.command("train", "--resume=runs/run", cwd=tmp_path)
    assert child.wait() == 0, child.said
    assert done, "the run was over before anybody could kill it"
    monkeypatch.chdir(tmp_path)
    main([*words(kind)[2:], "--name=straight"])
    assert differences(state(tmp_path / "runs/straight"), state(tmp_path / "runs/run")) == []
    with storage.open(tmp_path / "runs/run/store", mode="r+") as store:
        salvaged = salvage(store).episodes  # of a run that was killed behind its last checkpoint
    hashes = {storage.content_hash(tmp_path / f"runs/{name}/store") for name in ("straight", "run")}
    assert len(hashes) == 1 or salvaged


def written(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
