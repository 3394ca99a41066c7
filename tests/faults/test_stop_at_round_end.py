"""One Ctrl-C or SIGTERM to a run: it ends its round with a checkpoint; a second one ends it now."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

import storage
from pipeline.train import main
from tests.faults.jobs import train_words
from tests.faults.nursery import Child, Nursery, eventually
from tests.training.tiny import differences
from training.checkpoints.checkpoint_file import read_checkpoint

SIGINT, SIGTERM = signal.SIGINT, signal.SIGTERM
LAST = "runs/run/checkpoints/last.ckpt"


def words(steps: int, *more: str) -> list[str]:
    """A run of two lanes that writes no checkpoint of its own before its end."""
    own = ("--loop.lanes=2", "--checkpoint.every_steps=5000000", *more)
    names = {each.partition("=")[0] for each in own}
    kept = [each for each in train_words(steps) if each.partition("=")[0] not in names]
    return [*kept, *own]


def state(run: Path) -> dict[str, Any]:
    content = read_checkpoint(run / "checkpoints/last.ckpt")
    experience, agent = content["OnlineExperience"], content["sharpwave"]
    agent["counters"].pop("wall_time")
    return {
        "parameters": content["state_dict"],
        "optimizer": content["optimizer_states"],
        "counters": agent["counters"],
        "learning": agent["learning"],
        "returns": agent["recent_returns"],
        "view": experience["view"],
        "collector": experience["collector"],
    }


def learning(child: Child, run: Path) -> None:
    eventually(lambda: (run / "metrics.csv").exists() or not child.alive(), child.said)


def stopped_at(child: Child, number: int, folder: Path) -> int:
    """The step of the checkpoint that the run wrote when it was asked to stop."""
    child.send(number)
    code = child.wait()
    said = child.said
    assert code == 128 + number, said
    assert said.count("sharpwave: stopping after this round, with a checkpoint") == 1
    word = "interrupted" if number == SIGINT else "terminated"
    found = re.search(rf"sharpwave: {word}\. Go on from step ([\d,]+) by", said)
    assert found, said
    assert "Traceback" not in said
    steps = int(found[1].replace(",", ""))
    counters = read_checkpoint(folder / LAST)["sharpwave"]["counters"]
    assert counters["environment_steps"] == steps > 0
    return steps


@pytest.mark.parametrize(
    ("signals", "scheme"),
    [
        ([SIGINT], "uniform"),
        ([SIGTERM], "pser"),
        *(
            pytest.param([SIGINT, SIGTERM] * 5, each, marks=pytest.mark.soak)
            for each in ("per", "pser")
        ),
    ],
)
def test_stopped_runs_go_on_as_if_they_had_never_stopped(
    learners: Nursery,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    signals: list[int],
    scheme: str,
) -> None:
    """Nothing is lost and nothing set aside, however often."""
    run = tmp_path / "runs/run"
    # A prioritized run depends on its budget by the exponent of its weights.
    more = (f"--replay.scheme={scheme}", "--replay.priorities.beta_draws=1000")
    child = learners.command(*words(10**6, *more), cwd=tmp_path)
    learning(child, run)
    steps = stopped_at(child, signals[0], tmp_path)
    for number in signals[1:]:
        child = learners.command("train", "--resume=runs/run", cwd=tmp_path)
        written = (run / "metrics.csv").stat().st_size
        eventually(
            lambda: (run / "metrics.csv").stat().st_size > written or not child.alive(),  # noqa: B023
            child.said,
        )
        steps = stopped_at(child, number, tmp_path)
    with storage.open(run / "store") as store:
        assert store.n_steps == steps, "open episodes were cut, so that all can be read"
    monkeypatch.chdir(tmp_path)
    main(["--resume", "runs/run", f"--loop.steps={steps + 200}"])
    assert os.listdir(run / "store/orphans") == []
    main([*words(steps + 200, *more)[2:], "--name=straight"])
    assert differences(state(tmp_path / "runs/straight"), state(run)) == []
    hashes = {storage.content_hash(tmp_path / f"runs/{name}/store") for name in ("straight", "run")}
    assert len(hashes) == 1


@pytest.mark.parametrize("number", [SIGINT, SIGTERM])
def test_a_signal_ends_an_evaluation_that_would_never_end(
    learners: Nursery, tmp_path: Path, number: int
) -> None:
    """A greedy episode goes on forever at step 256; the round before it is kept, and goes on."""
    endless = ("--environment.id=tests.training.zoo.Alike", "--evaluation.max_steps=1000000000")
    own = [each for each in train_words(1000) if not each.startswith("--environment.id")]
    child = learners.command(*own, *endless, cwd=tmp_path)
    last = tmp_path / LAST
    eventually(lambda: (last.exists() and steps_of(last) == 192) or not child.alive(), child.said)
    time.sleep(0.5)
    assert child.alive(), child.said
    assert stopped_at(child, number, tmp_path) == 256
    assert "evaluation" not in (tmp_path / "runs/run/metrics.csv").read_text()
    again = learners.command("train", "--resume=runs/run", "--evaluation.episodes=0", cwd=tmp_path)
    assert again.wait() == 0, again.said
    assert steps_of(last) == 1000


def steps_of(checkpoint: Path) -> int:
    return int(read_checkpoint(checkpoint)["sharpwave"]["counters"]["environment_steps"])


@pytest.mark.parametrize("signals", [(SIGINT, SIGINT), (SIGTERM, SIGTERM)])
def test_a_second_signal_ends_a_run_at_once(
    learners: Nursery, tmp_path: Path, signals: tuple[int, int]
) -> None:
    """Its round is one of minutes; what it goes on from is the checkpoint that was there."""
    long = ("--loop.round_steps=4000000", "--loop.warmup=4000000", "--evaluation.episodes=0")
    child = learners.command(*words(8_000_000, *long), cwd=tmp_path)
    log, last = tmp_path / "runs/run/store/log/000001.log", tmp_path / LAST
    eventually(lambda: (log.exists() and last.exists()) or not child.alive(), child.said)
    for number in signals:
        time.sleep(0.2)
        child.send(number)
    code = child.wait()
    assert "Traceback" not in child.said
    assert read_checkpoint(tmp_path / LAST)["global_step"] == 0
    if signals[0] == SIGINT:
        assert code == 130, child.said
        assert "Go on from step 0 by `sharpwave train --resume runs/run`" in child.said
    else:
        assert code == -SIGTERM, child.said
