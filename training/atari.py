"""Atari games of the Arcade Learning Environment, which gymnasium knows only once asked to."""

from __future__ import annotations

import importlib.util

import gymnasium

__all__ = ["register_atari"]


def register_atari() -> bool:
    """Registers the environments of ale_py, without its banner; whether it is installed."""
    if importlib.util.find_spec("ale_py") is None:
        return False
    import ale_py

    # The emulator prints its version whenever it starts, unless it is to report errors only.
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    gymnasium.register_envs(ale_py)
    return True
