"""One agent's update, on its own engine and on a batch of made-up steps, to time without a loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, get_args

import torch

from bench.cheetah import ENVIRONMENT, spec
from bench.inside import Tap, engine_of
from storage.store import Store
from training.agents.vracer.config import VRacerConfig
from training.assembly import make_agent
from training.config import EnvironmentConfig, RunConfig
from training.engines.compiler import compiler_problem
from training.engines.engine_choice import EngineName

__all__ = ["engine_names", "engine_update"]

_RATE = 1e-7
"""So small that thousands of updates on one batch leave the policy where it began."""


def engine_names() -> list[EngineName]:
    """The engines that this machine can run; without a compiler, not the compiled one."""
    names: list[EngineName] = list(get_args(EngineName))
    return [name for name in names if name != "compiled" or compiler_problem() is None]


def engine_update(name: EngineName, store: Store, batch: int, width: int) -> Callable[[], Any]:
    """The engine's part of V-RACER's update, for two hidden layers of that width.

    The agent runs one whole update on a batch of the store; what it hands to its engine is what
    the engine gets again and again.
    """
    torch.set_num_threads(1)
    settings = VRacerConfig(
        hidden=[width, width], batch_size=batch, learning_rate=_RATE, engine=name
    )
    agent: Any = make_agent(RunConfig(EnvironmentConfig(ENVIRONMENT), agent=settings), spec())
    agent.bind(agent.configure_optimizers())
    tap = Tap(engine_of(agent), "update")
    window = store.n_steps
    with store.replay(window=window, seed=0, fields=agent.fields, private=True) as view:
        agent.begin_learning(view)
        agent.update(view)
    return partial(tap.call, *tap.arguments, **tap.keywords)
