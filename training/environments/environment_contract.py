"""What gymnasium's environments owe, and the errors of those that owe it still."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Any

import numpy as np

from storage.errors import EnvironmentFaultError

__all__ = ["fault", "flag", "process_fault", "reset_parts", "reward_number", "step_parts"]

_RESET = "gymnasium's reset returns the two (observation, info), and info is a dict"
_STEP = (
    "gymnasium's step returns the five (observation, reward, terminated, truncated, info), and "
    "info is a dict"
)
_STEP_PARTS = 5


def fault(lane: int | None, call: str, error: BaseException) -> EnvironmentFaultError:
    """What an environment raised, in one line."""
    return _fault(lane, f"the environment's {call} raised {type(error).__name__}: {error}")


def process_fault(lane: int, call: str, code: int | None) -> EnvironmentFaultError:
    """How the process of an environment ended, by its exit code, and what it was asked for."""
    if code is None or code >= 0:
        return _fault(lane, f"the environment's process ended with exit code {code} in its {call}")
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return _fault(
        lane,
        f"the environment's process was killed by {name} in its {call}; SIGKILL is what the system "
        "sends when memory runs out: take fewer lanes then",
    )


def reset_parts(lane: int, shown: Any) -> tuple[Any, Mapping[str, Any]]:
    """Observation and info.

    Raises:
        EnvironmentFaultError: ``shown`` is anything else.
    """
    if type(shown) is tuple and len(shown) == 2 and isinstance(shown[1], Mapping):
        return shown
    raise _fault(lane, f"the environment's reset returned {_described(shown)}; {_RESET}")


def step_parts(lane: int, shown: Any) -> tuple[Any, Any, Any, Any, Mapping[str, Any]]:
    """Observation, reward, terminated, truncated and info.

    Raises:
        EnvironmentFaultError: ``shown`` is anything else.
    """
    if type(shown) is tuple and len(shown) == _STEP_PARTS:
        info = shown[4]
        if type(info) is dict or isinstance(info, Mapping):
            return shown
    raise _fault(lane, f"the environment's step returned {_described(shown)}; {_STEP}")


def reward_number(lane: int, reward: Any) -> float:
    """The reward as a number; arrays of one number are taken for it.

    Raises:
        EnvironmentFaultError: it is no number.
    """
    if isinstance(reward, float):  # NumPy's float64 is one, too
        return float(reward)
    array = np.asarray(reward)
    if array.size == 1 and array.dtype.kind in "biuf":
        return float(array.reshape(())[()])
    raise _fault(
        lane, f"the environment's step returned the reward {reward!r}; it must be one number"
    )


def flag(lane: int, name: str, value: Any) -> bool:
    """``terminated`` or ``truncated``; 0 and 1 and arrays of one flag are taken for it.

    Raises:
        EnvironmentFaultError: it is no truth value.
    """
    if type(value) is np.bool_:
        return bool(value)
    array = np.asarray(value)
    if array.size == 1 and array.dtype.kind in "biu":
        return bool(array.reshape(())[()])
    raise _fault(
        lane, f"the environment's step returned {name} = {value!r}; it must be True or False"
    )


def _fault(lane: int | None, what: str) -> EnvironmentFaultError:
    error = EnvironmentFaultError(what)
    error.lane = lane
    return error


def _described(shown: Any) -> str:
    if isinstance(shown, tuple):
        return f"{len(shown)} values of types {', '.join(type(each).__name__ for each in shown)}"
    return f"one value of type {type(shown).__name__}"
