"""The command line as a user starts it: a process of its own, in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.train import main as train

Command = Callable[..., "subprocess.CompletedProcess[str]"]

SMALL = (
    "--environment.id=InvertedPendulum-v5",
    "--agent.hidden=[8, 8]",
    "--agent.batch_size=16",
    "--replay.window=1000",
    "--loop.steps=1100",
    "--loop.warmup=200",
    "--loop.round_steps=32",
    "--evaluation.every_steps=512",
    "--evaluation.episodes=2",
    "--logging.every_steps=64",
    "--checkpoint.every_steps=512",
)


def small(*options: str) -> list[str]:
    """`SMALL` with `options`, which take the place of its own of the same names."""
    given = {option.partition("=")[0] for option in options}
    return [*(word for word in SMALL if word.partition("=")[0] not in given), *options]


def run_in(folder: Path, *words: object, code: int = 0, **environment: str):
    """Runs `sharpwave …` in `folder`, without a terminal, and gives the finished process."""
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.cli", *map(str, words)],
        cwd=folder,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture
def sharpwave(tmp_path: Path) -> Command:
    """`run_in` for the test's own folder."""
    return lambda *words, **options: run_in(tmp_path, *words, **options)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A folder with runs/small, which a process trained, and what that process printed."""
    folder = tmp_path_factory.mktemp("trained")
    done = run_in(folder, "train", "--name=small", *SMALL)
    return folder, done.stdout, done.stderr


@pytest.fixture
def run(trained: tuple[Path, str, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """`runs/small`, from inside the folder that holds `runs`; not to be changed."""
    monkeypatch.chdir(trained[0])
    return Path("runs/small")


@pytest.fixture(scope="session")
def compared(trained: tuple[Path, str, str]) -> Path:
    """The folder that holds small, another seed, another engine, and a run that does not act."""
    folder = trained[0]
    run_in(folder, "train", *small("--name=second", "--seed=1"))
    run_in(folder, "train", *small("--name=eager", "--agent.engine=eager"))
    offline = small("--name=offline", "--loop.steps=600", "--evaluation.every_steps=192")
    run_in(folder, "train", *offline, "--offline=runs/small/store")
    return folder / "runs"


@pytest.fixture(scope="session")
def pong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`runs/pong`, of 96 steps in frames of 36 x 36 pixels."""
    folder = tmp_path_factory.mktemp("atari")
    train(
        [
            "--environment.id=Atari/pong",
            "--environment.kwargs={max_frames: 160, screen: 36}",
            "--agent.kind=dqn",
            "--agent.hidden=[8]",
            "--agent.batch_size=4",
            "--agent.engine=eager",
            "--replay.scheme=pser",
            "--replay.window=500",
            "--loop.steps=96",
            "--loop.warmup=64",
            "--loop.round_steps=32",
            "--loop.updates_per_step=0.25",
            "--evaluation.episodes=0",
            "--seed=3",
            "--name=pong",
            f"--runs={folder}",
        ]
    )
    return folder / "pong"
