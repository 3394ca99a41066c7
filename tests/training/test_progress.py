from __future__ import annotations

import io

import pytest

from training.progress import RunProgress, Status, duration


class _Module:
    def __init__(self) -> None:
        self.steps = 0

    def status(self) -> Status:
        return Status(self.steps, 1000, max(0, self.steps - 100), float("nan"), 0.5, 0.125)


def _run(stream, seconds_a_round: float) -> None:
    now = [0.0]
    module = _Module()
    progress = RunProgress(stream, interval=30.0, clock=lambda: now[0])
    progress.on_train_start(None, module)
    for _ in range(10):
        module.steps += 100
        now[0] += seconds_a_round
        progress.on_train_batch_end(None, module, None, None, 0)
    progress.on_train_end(None, module)


def test_plain_output_is_at_most_one_line_per_interval_without_carriage_returns():
    stream = io.StringIO()
    _run(stream, seconds_a_round=10.0)
    text = stream.getvalue()
    lines = text.splitlines()
    assert "\r" not in text
    assert "\x1b" not in text
    assert lines[0] == (
        "300 of 1,000 steps (30 %)  updates 200  return (100) –  β 0.500  far 0.125  10 steps/s"
        "  70 s left"
    )
    assert len(lines) == 4
    assert lines[-1].startswith("1,000 of 1,000 steps (100 %)")


def test_a_run_that_takes_no_environment_steps_speaks_of_updates():
    status = Status(300, 1000, 300, float("nan"), 0.5, 0.125, acting=False)
    assert status.line(10.0) == ("300 of 1,000 updates (30 %)  β 0.500  far 0.125  10 updates/s")


def test_a_short_run_without_a_terminal_says_one_line():
    stream = io.StringIO()
    _run(stream, seconds_a_round=0.1)
    assert len(stream.getvalue().splitlines()) == 1


def test_the_time_left_is_told_once_updates_are_measured_and_counts_them_alone():
    """Warm-up steps are many times faster; a forecast by them is off by that much."""
    stream, now, module = io.StringIO(), [0.0], _Module()
    progress = RunProgress(stream, interval=1000.0, clock=lambda: now[0])
    progress.on_train_start(None, module)
    for steps, seconds in [(100, 0.01), (100, 1.0), (100, 4.0), (100, 4.0), (100, 4.0)]:
        module.steps += steps
        now[0] += seconds
        progress.on_train_batch_end(None, module, None, None, 0)
    (line,) = stream.getvalue().splitlines()
    assert line.startswith("400 of 1,000 steps")
    assert line.endswith(" 24 s left")


@pytest.mark.parametrize(
    ("seconds", "text"), [(89.4, "89 s"), (90, "2 min"), (3599, "1 h 0 min"), (9000, "2 h 30 min")]
)
def test_durations_are_told_as_exactly_as_they_are_known(seconds: float, text: str):
    assert duration(seconds) == text


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_bar_in_environment_steps():
    stream = _Terminal()
    _run(stream, seconds_a_round=1.0)
    text = stream.getvalue()
    assert "1,000 of 1,000 steps" in text
    assert "100 %" in text
    assert (
        text.rstrip("\n").count("updates 900  return (100) –  β 0.500  far 0.125  100 steps/s") == 1
    )
