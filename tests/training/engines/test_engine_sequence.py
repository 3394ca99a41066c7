from __future__ import annotations

from typing import Any

import pytest
import torch

from training.engines.engine_sequence import EngineSequence


class Part:
    """Says who ran, in which order, and falls back as it is told."""

    def __init__(self, log: list[str], title: str, name: str, falls: bool = False) -> None:
        self.log, self.title, self.name, self.falls = log, title, name, falls

    def bind(self) -> None:
        self.log.append(f"bind {self.title}")

    def update(self, batch: Any, schedule: Any) -> dict[str, torch.Tensor]:
        self.name = "eager" if self.falls else self.name
        self.log.append(f"{self.title} {self.name} {batch} {schedule}")
        size = {"first": 3.0, "second": 4.0}[self.title]
        return {
            "loss": torch.tensor(size),
            "gradient_norm": torch.tensor(size),
            self.title: torch.tensor(size),
        }


def sequence(log: list[str], falling: str | None = None, recorded: str | None = None):
    def maker(title: str):
        def make(*, recorded: str | None) -> Any:
            falls = title == falling and recorded is None
            return Part(log, title, recorded or "compiled", falls)

        return make

    return EngineSequence([maker("first"), maker("second")], recorded)


def test_parts_run_in_turn_and_their_feedback_is_one():
    log: list[str] = []
    made = sequence(log)
    made.bind()
    feedback = made.update("batch", "schedule")
    assert log == [
        "bind first",
        "bind second",
        "first compiled batch schedule",
        "second compiled batch schedule",
    ]
    assert {name: float(tensor) for name, tensor in feedback.items()} == {
        "loss": 7.0,
        "gradient_norm": 5.0,
        "first": 3.0,
        "second": 4.0,
    }
    assert made.name == "compiled"


@pytest.mark.parametrize("falling", ["first", "second"])
def test_one_part_that_cannot_be_compiled_makes_all_of_them_eager(falling):
    log: list[str] = []
    made = sequence(log, falling)
    made.update(0, 0)
    assert made.name == "eager"
    made.update(1, 1)
    assert log[2:] == ["first eager 1 1", "second eager 1 1"]


def test_a_recorded_engine_reaches_every_part():
    log: list[str] = []
    made = sequence(log, "second", recorded="eager")
    assert made.name == "eager"
    made.update(0, 0)
    assert log == ["first eager 0 0", "second eager 0 0"]
