"""The whole loop: environment steps a second, each with one update of 256 steps."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

import lightning
from lightning.pytorch.callbacks import Callback

import training
from bench import acting, collecting, updating
from bench.cheetah import ENVIRONMENT
from bench.figure import Figure
from training.config import EvaluationConfig, LoopConfig, RunConfig, VRacerConfig
from training.engine_choice import EngineName
from training.environment import EnvironmentConfig

__all__ = ["measure"]

_WARMUP = 2_000
_STEPS = 8_000
_ENGINES: Final[tuple[EngineName, ...]] = ("eager", "fused")


class _Stopwatch(Callback):
    """Rate of the rounds after the warm-up and the first few updates."""

    def __init__(self) -> None:
        self.marks: list[tuple[int, float]] = []

    def on_train_batch_end(self, trainer: lightning.Trainer, pl_module: Any, *_: Any) -> None:
        if pl_module.counters.updates > 500:
            self.marks.append((pl_module.environment_steps, time.perf_counter()))

    @property
    def rate(self) -> float:
        (first, began), (last, ended) = self.marks[0], self.marks[-1]
        return (last - first) / (ended - began)


def measure(folder: Path) -> list[Figure]:
    """One figure an engine that a run would take, beside bare stepping and matrix products."""
    limit = 1 / (
        1 / collecting.bare_rate() + (acting.matrix_products() + updating.matrix_products()) / 1e6
    )
    details = {"environment": ENVIRONMENT, "updates_per_step": 1, "batch": 256}
    name = "bare gymnasium and matrix products"
    return [
        Figure(f"loop, {engine}", "steps/s", _rate(engine, folder / engine), limit, name, details)
        for engine in _ENGINES
    ]


def _rate(engine: EngineName, folder: Path) -> float:
    config = RunConfig(
        EnvironmentConfig(ENVIRONMENT),
        agent=VRacerConfig(engine=engine),
        loop=LoopConfig(steps=_STEPS, warmup=_WARMUP),
        evaluation=EvaluationConfig(episodes=0),
    )
    module, data = training.build(config, folder)
    watch = _Stopwatch()
    trainer = training.trainer(config, folder, callbacks=[watch], logger=False)
    trainer.fit(module, data)
    return watch.rate
