"""Exceptions of an agent, a scheme or settings of the user's own, as the command tells them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.cli import main
from tests.pipeline.conftest import small

CODE = """
from dataclasses import dataclass

from storage.replay.schemes.uniform import Uniform
from training.agents.vracer.agent import VRacer
from training.agents.vracer.config import VRacerConfig


@dataclass(frozen=True, slots=True)
class FaultyConfig(VRacerConfig):
    kind: str = "faulty.Agent"
    at: int = 150

    def __post_init__(self):
        if self.at < 0:
            raise ValueError("before the run")


class Agent(VRacer):
    settings = FaultyConfig

    def update(self, view):
        if self.counters.updates == self.config.agent.at:
            self.fail()
        super().update(view)

    def fail(self):
        raise ZeroDivisionError("of my own")


class Unmade(Agent):
    def __init__(self, *wrong):
        super().__init__(*wrong)
        raise ZeroDivisionError("of my own")


@dataclass(frozen=True, slots=True)
class MuteConfig(FaultyConfig):
    kind: str = "faulty.Mute"


class Engine:
    name = "eager"

    def bind(self):
        pass

    def update(self, batch, schedule):
        return {}


class Mute(VRacer):
    settings = MuteConfig

    def make_engine(self, optimizer, recorded):
        return Engine()


class Scheme(Uniform):
    name = "faulty"

    def __init__(self, window, seed, priorities, sequences):
        super().__init__(window, seed)

    def draw(self, positions, weights, index):
        if index == 150:
            positions.resize(-1)  # numpy raises it
        super().draw(positions, weights, index)
"""
QUICK = ("--loop.steps=640", "--agent.engine=eager", "--evaluation.episodes=0", "--name=own")
CHECKPOINTS = "--checkpoint.every_steps=128"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "faulty.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("faulty", None)


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[list[str], list[str]]:
    """The traceback, and what stands behind the exception's own line."""
    assert main(["train", *words]) == 1
    error = capsys.readouterr().err
    lines = error[error.index("Traceback (most recent call last):") :].splitlines()
    (at,) = (i for i, line in enumerate(lines) if line.startswith(("ZeroDivision", "ValueError")))
    return lines[: at + 1], lines[at + 1 :]


@pytest.mark.parametrize(
    ("options", "raised"),
    [
        (["--agent.kind=faulty.Agent"], "faulty.Agent.fail raised ZeroDivisionError"),
        (["--replay.scheme=faulty.Scheme"], "faulty.Scheme.draw raised ValueError"),
    ],
)
def test_a_run_that_dies_in_the_user_s_code_says_who_and_how_to_go_on(
    folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], raised: str
) -> None:
    shown, (line,) = told(capsys, *small(*QUICK, *options, CHECKPOINTS))
    places = [each for each in shown if each.startswith("  File ")]
    assert "faulty.py" in places[0]
    assert not any("lightning" in place for place in places)
    assert line.startswith(f"sharpwave: {raised} (--debug shows all callers). The episodes of ")
    assert line.endswith("Go on from step 256 by `sharpwave train --resume runs/own`.")


def test_it_goes_on_once_it_is_corrected(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, *small(*QUICK, "--agent.kind=faulty.Agent", CHECKPOINTS))
    code = (folder / "faulty.py").read_text()
    (folder / "faulty.py").write_text(code.replace("            self.fail()", "            pass"))
    sys.modules.pop("faulty")
    assert main(["train", "--resume=runs/own"]) == 0


def test_before_there_is_a_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown, (line,) = told(capsys, *small(*QUICK, "--agent.kind=faulty.Agent", "--agent.at=-1"))
    assert len([each for each in shown if each.startswith("  File ")]) == 1
    raised = "faulty.FaultyConfig.__post_init__ raised ValueError (--debug shows all callers)."
    assert line == f"sharpwave: {raised}"
    _, (line,) = told(capsys, *small(*QUICK, "--agent.kind=faulty.Unmade"))
    assert line.startswith("sharpwave: faulty.Unmade.__init__ raised ZeroDivisionError")


def test_debug_shows_all_of_it(folder: Path) -> None:
    with pytest.raises(Exception, match="of my own") as caught:
        main(["--debug", "train", *small(*QUICK, "--agent.kind=faulty.Agent")])
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert "--resume runs/own" in caught.value.__cause__.__notes__[0]


def test_a_fault_of_ours_is_left_as_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its traceback is whole, and behind it stands what is kept."""
    monkeypatch.setattr("training.learner.next_beta", None)  # calling it is a TypeError
    with pytest.raises(TypeError) as caught:
        main(["train", *small(*QUICK)])
    (note,) = caught.value.__notes__
    assert note.startswith("sharpwave: The episodes of ")


@pytest.mark.usefixtures("folder")
def test_what_own_code_gives_wrongly_is_traced_to_it() -> None:
    """The exception is Sharpwave's, because an engine of the user's gave no loss."""
    with pytest.raises(KeyError, match="loss") as caught:
        main(["train", *small(*QUICK, "--agent.kind=faulty.Mute")])
    (note,) = caught.value.__notes__
    assert note.startswith("sharpwave: faulty.Mute is yours: look at what came of that code")
