"""Installed peers, each beside ours in the same run; those that are not installed are left out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, TypeVar

import gymnasium
import numpy as np

from bench.cheetah import ACTIONS, BATCH, ENVIRONMENT, OBSERVATIONS
from bench.collecting import cheetah_policy, play_hand_written, storing
from bench.effort import Effort
from bench.figure import Figure
from bench.sampling import filled_store
from bench.timing import alternate, microseconds, per_second

__all__ = ["measure"]

Draw = Callable[[], Any]
"""Draws a batch of `BATCH` steps from a full buffer of `_WINDOW`."""

Made = TypeVar("Made")

_WINDOW = 2**18
_FIELDS = ("observation", "action", "reward", "next_observation", "terminated", "truncated")
_SPACES = (
    gymnasium.spaces.Box(-np.inf, np.inf, (OBSERVATIONS,), np.float64),
    gymnasium.spaces.Box(-1, 1, (ACTIONS,), np.float32),
)


def measure(folder: Path, effort: Effort) -> list[Figure]:
    """Draws beside the peers' replay buffers, collecting beside Minari's recorder."""
    figures = []
    buffers = {name: draw for name in _BUFFERS if (draw := _present(name, _BUFFERS[name]))}
    if buffers:
        figures += _drawing(folder / "drawn", buffers, effort)
    with ExitStack() as stack:
        recorder = _present("minari", partial(_recorder, stack))
        if recorder is not None:
            figures.append(_recording(folder / "collected", recorder, effort))
    return figures


def _present(name: str, make: Callable[[], Made]) -> Made | None:
    """What `make` makes of a peer; None, said so, where it or what it needs is not installed."""
    try:
        return make()
    except ImportError as error:
        print(f"  left out {name}: {error}", file=sys.stderr)
        return None


def _drawing(path: Path, buffers: Mapping[str, Draw], effort: Effort) -> list[Figure]:
    """`view.sample` with the fields that the peers' batches hold."""
    with (
        filled_store(path, _WINDOW) as store,
        store.replay(window=_WINDOW, seed=0, fields=_FIELDS, private=True) as view,
    ):
        works = {"ours": microseconds(lambda: view.sample(BATCH))}
        works |= {name: microseconds(draw) for name, draw in buffers.items()}
        samples = alternate(works, effort.repeats(200))
    return [
        Figure.of(
            f"draw a batch, beside {name}",
            "µs",
            samples["ours"],
            samples[name],
            f"ReplayBuffer.sample of {name} {version(name.replace('_', '-'))}",
            details={"window": _WINDOW, "batch": BATCH, "fields": _FIELDS},
        )
        for name in buffers
    ]


def _stable_baselines3() -> Draw:
    make = import_module("stable_baselines3.common.buffers").ReplayBuffer
    buffer = make(_WINDOW, *_SPACES, device="cpu", handle_timeout_termination=True)
    draw = np.random.default_rng(0)
    buffer.observations[:, 0] = draw.normal(size=(_WINDOW, OBSERVATIONS))
    buffer.next_observations[:, 0] = buffer.observations[:, 0]
    buffer.actions[:, 0] = draw.normal(size=(_WINDOW, ACTIONS))
    buffer.full = True
    return lambda: buffer.sample(BATCH)


def _cpprb() -> Draw:
    make = import_module("cpprb").ReplayBuffer
    observation = {"shape": OBSERVATIONS, "dtype": np.float64}
    flag = {"dtype": np.bool_}
    columns = {"obs": observation, "act": {"shape": ACTIONS}, "rew": {"dtype": np.float64}}
    columns |= {"next_obs": observation, "terminated": flag, "truncated": flag}
    buffer = make(_WINDOW, columns)
    draw = np.random.default_rng(0)
    block = 2**13
    for _ in range(_WINDOW // block):
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
