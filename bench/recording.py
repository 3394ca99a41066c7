"""Collecting beside Minari's recorder, where that is installed."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from bench.cheetah import ACTIONS, ENVIRONMENT
from bench.collecting import cheetah_policy, play_hand_written, storing
from bench.effort import Effort
from bench.figure import Figure
from bench.timing import alternate, per_second

__all__ = ["measure"]


def measure(folder: Path, effort: Effort) -> list[Figure]:
    """One figure, or none and a word why."""
    with ExitStack() as stack:
        try:
            recorder = _recorder(stack)
        except ImportError as error:
            print(f"  left out minari: {error}", file=sys.stderr)
            return []
        return [_recording(folder / "collected", recorder, effort)]


def _recording(path: Path, recorder: Any, effort: Effort) -> Figure:
    """The collector beside the policy's loop in an environment wrapped by Minari's recorder."""
    config, spec, policy = cheetah_policy()
    with storing(path, config, spec, policy) as ours:
        samples = alternate(
            {
                "ours": per_second(ours),
                "minari": per_second(lambda: play_hand_written(recorder, policy)),
            },
            effort.repeats(20),
        )
    return Figure.of(
        "collect, beside minari",
        "steps/s",
        samples["ours"],
        samples["minari"],
        f"DataCollector (arrow) of minari {version('minari')}",
        details={"environment": ENVIRONMENT, "policy": "V-RACER, untrained"},
    )


def _recorder(stack: ExitStack) -> Any:
    """A recording environment, which has stepped once; it keeps its episodes in temporary files."""
    record = import_module("minari").DataCollector
    env = record(gymnasium.make(ENVIRONMENT), record_infos=False, data_format="arrow")
    stack.callback(env.close)
    env.reset(seed=0)
    env.step(np.zeros(ACTIONS, np.float32))
    return env
