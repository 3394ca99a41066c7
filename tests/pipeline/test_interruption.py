"""Two signals at once: the second one is never taken for a first one."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pipeline import interruption
from pipeline.interruption import RoundEndStop

INT, TERM = signal.SIGINT, signal.SIGTERM


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What was written to the terminal."""
    before = {number: signal.getsignal(number) for number in (INT, TERM)}
    lines: list[str] = []
    monkeypatch.setattr(os, "write", lambda _, data: lines.append(data.decode()))
    yield lines
    for number, handler in before.items():
        signal.signal(number, handler)


def again_within(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, number: int) -> None:
    """Send a signal from within the first call of a function."""
    real: Callable[..., Any] = getattr(module, name)

    def sending(*arguments: Any) -> Any:
        monkeypatch.setattr(module, name, real)
        result = real(*arguments)
        signal.raise_signal(number)
        return result

    monkeypatch.setattr(module, name, sending)


@pytest.mark.parametrize("call", ["getpid", "write"])
def test_ctrl_c_within_the_first_one_s_handler_stops_at_once(
    told: list[str], monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """The second comes before the first has put another handler in its place."""
    signal.signal(INT, signal.default_int_handler)
    stop = RoundEndStop()
    again_within(monkeypatch, interruption.os, call, INT)
    with pytest.raises(KeyboardInterrupt), stop.starting():
        signal.raise_signal(INT)
    assert stop.at_once
    assert "".join(told).count("Ctrl-C again stops at once") == 1
    assert signal.getsignal(INT) is signal.default_int_handler


def test_ctrl_c_twice_one_after_the_other_stops_at_once(told: list[str]) -> None:
    signal.signal(INT, signal.default_int_handler)
    stop = RoundEndStop()
    with stop.starting():
        signal.raise_signal(INT)
        assert (stop.stop_asked, stop.at_once) == (True, False)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(INT)
    assert stop.at_once
    assert len(told) == 1


def test_sigterm_within_the_handler_of_the_first_ends_the_process(
    told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    raised: list[int] = []
    stop = RoundEndStop()
    stop._take_over(TERM)
    again_within(monkeypatch, interruption.os, "write", TERM)
    real = signal.raise_signal

    def once(number: int) -> None:
        """The first sends a signal; what follows would end this process."""
        if signal.getsignal(number) is signal.SIG_DFL:
            raised.append(number)
        else:
            real(number)

    monkeypatch.setattr(signal, "raise_signal", once)
    signal.raise_signal(TERM)
    assert raised == [TERM]
    assert len(told) == 1
