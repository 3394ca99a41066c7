"""Interrupts of `sharpwave train` while the run is made, and as libraries change them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.train import main
from tests.pipeline.conftest import small
from tests.training.zoo import Drift


class Interrupting(Drift):
    """Sends its process Ctrl-C: when it is made for the nth time, or twice in its nth step."""

    made = 0
    at_making = 0
    at_step = 0

    def __init__(self) -> None:
        super().__init__()
        Interrupting.made += 1
        if Interrupting.made == Interrupting.at_making:
            os.kill(os.getpid(), signal.SIGINT)

    def step(self, action: Any) -> Any:
        Interrupting.at_step -= 1
        if Interrupting.at_step == 0:
            os.kill(os.getpid(), signal.SIGINT)
            try:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(1)
            except KeyboardInterrupt:
                raise RuntimeError("a compiler was interrupted") from None
        return super().step(action)


@pytest.fixture
def interrupting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    monkeypatch.chdir(tmp_path)
    for name in ("made", "at_making", "at_step"):
        monkeypatch.setattr(Interrupting, name, 0)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield [
        "--name=cut",
        *small("--environment.id=tests.pipeline.test_train_interrupts.Interrupting"),
    ]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(("making", "kept"), [(1, "Nothing was learnt yet"), (2, "from step 0 by")])
def test_ctrl_c_while_a_run_is_made_ends_it_before_its_first_round(
    interrupting: list[str], capfd: pytest.CaptureFixture[str], making: int, kept: str
) -> None:
    """The first is made to look at the environment, the second to act in."""
    Interrupting.at_making = making
    with pytest.raises(KeyboardInterrupt, match=kept):
        main(interrupting)
    assert "stopping before the first round; Ctrl-C again" in capfd.readouterr().err
    assert Path("runs/cut/checkpoints/last.ckpt").is_file() == (making == 2)


def test_an_error_that_a_second_ctrl_c_became_is_an_interrupt(interrupting: list[str]) -> None:
    Interrupting.at_step = 40
    with pytest.raises(KeyboardInterrupt, match="Go on from step 0 by") as caught:
        main(interrupting)
    assert caught.value.__context__ is None  # the command words the root of an error
