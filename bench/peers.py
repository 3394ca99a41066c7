"""Installed peers, each beside ours in the same run; those that are not installed are left out."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import gymnasium
import numpy as np

from bench.cheetah import ACTIONS, BATCH, ENVIRONMENT, OBSERVATIONS
from bench.collecting import cheetah_policy, play_hand_written, storing
from bench.effort import Effort
from bench.figure import Figure
from bench.sampling import filled_store
from bench.timing import alternate, microseconds, per_second

__all__ = ["measure"]

_WINDOW = 2**18
_FIELDS = ("observation", "action", "reward", "next_observation", "terminated", "truncated")
_SPACES = (
    gymnasium.spaces.Box(-np.inf, np.inf, (OBSERVATIONS,), np.float64),
    gymnasium.spaces.Box(-1, 1, (ACTIONS,), np.float32),
)


def measure(folder: Path, effort: Effort) -> list[Figure]:
    """Draws beside the peers' replay buffers, collecting beside Minari's recorder."""
    buffers = {module: make for module, make in _BUFFERS.items() if _installed(module)}
    figures = _drawing(folder / "drawn", buffers, effort) if buffers else []
    if _installed("minari"):
        figures.append(_recording(folder, effort))
    return figures


def _drawing(
    path: Path, buffers: Mapping[str, Callable[[int], Callable[[], Any]]], effort: Effort
) -> list[Figure]:
    """`view.sample` with the fields that the peers' batches hold."""
    with (
        filled_store(path, _WINDOW) as store,
        store.replay(window=_WINDOW, seed=0, fields=_FIELDS, private=True) as view,
    ):
        works = {"ours": microseconds(lambda: view.sample(BATCH))}
        works |= {name: microseconds(make(_WINDOW)) for name, make in buffers.items()}
        samples = alternate(works, effort.repeats(200))
    return [
        Figure.of(
            f"draw a batch, beside {name}",
            "µs",
            samples["ours"],
            samples[name],
            f"ReplayBuffer.sample of {name} {_version(name)}",
            details={"window": _WINDOW, "batch": BATCH, "fields": _FIELDS},
        )
        for name in buffers
    ]


def _stable_baselines3(size: int) -> Callable[[], Any]:
    buffers = import_module("stable_baselines3.common.buffers")
    buffer = buffers.ReplayBuffer(size, *_SPACES, device="cpu", handle_timeout_termination=True)
    draw = np.random.default_rng(0)
    buffer.observations[:, 0] = draw.normal(size=(size, OBSERVATIONS))
    buffer.next_observations[:, 0] = buffer.observations[:, 0]
    buffer.actions[:, 0] = draw.normal(size=(size, ACTIONS))
    buffer.full = True
    return lambda: buffer.sample(BATCH)


def _cpprb(size: int) -> Callable[[], Any]:
    observation = {"shape": OBSERVATIONS, "dtype": np.float64}
    flag = {"dtype": np.bool_}
    columns = {"obs": observation, "act": {"shape": ACTIONS}, "rew": {"dtype": np.float64}}
    columns |= {"next_obs": observation, "terminated": flag, "truncated": flag}
    buffer = import_module("cpprb").ReplayBuffer(size, columns)
    draw = np.random.default_rng(0)
    block = 2**13
    for _ in range(-(-size // block)):
        observations = draw.normal(size=(block, OBSERVATIONS))
        actions = draw.normal(size=(block, ACTIONS)).astype(np.float32)
        no = np.zeros(block, np.bool_)
        buffer.add(
            obs=observations,
            act=actions,
            rew=np.zeros(block),
            next_obs=observations,
            terminated=no,
            truncated=no,
        )
    return lambda: buffer.sample(BATCH)


_BUFFERS: Final = {"stable_baselines3": _stable_baselines3, "cpprb": _cpprb}


def _recording(folder: Path, effort: Effort) -> Figure:
    """The collector beside the policy's loop in an environment wrapped by Minari's recorder."""
    config, spec, policy = cheetah_policy()
    with ExitStack() as stack:
        ours = stack.enter_context(storing(folder / "collected", config, spec, policy))
        recorders = _recorders(stack)
        samples = alternate(
            {
                "ours": per_second(ours),
                "minari": per_second(lambda: play_hand_written(next(recorders), policy)),
            },
            effort.repeats(20),
        )
    title = f"DataCollector of minari {version('minari')}"
    return Figure.of(
        "collect, beside minari",
        "steps/s",
        samples["ours"],
        samples["minari"],
        title,
        details={"environment": ENVIRONMENT, "policy": "V-RACER, untrained"},
    )


def _recorders(stack: ExitStack) -> Iterator[Any]:
    """The same recording environment over and over; it keeps its episodes in temporary files."""
    env = import_module("minari").DataCollector(gymnasium.make(ENVIRONMENT), record_infos=False)
    stack.callback(env.close)
    return itertools.repeat(env)


def _installed(module: str) -> bool:
    if importlib.util.find_spec(module) is not None:
        return True
    print(f"  {module} is not installed: left out", file=sys.stderr)
    return False


def _version(module: str) -> str:
    return version(module.replace("_", "-"))
