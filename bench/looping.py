"""The whole loop on Hopper-v5: environment steps a second, each with one update of 256 steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from bench.cheetah import BATCH, HIDDEN
from bench.effort import Effort
from bench.figure import Figure
from bench.loop_setup import ACTIONS, ENVIRONMENT, OBSERVATIONS, LoopSetup
from bench.products import act_products, layer_sizes, update_products
from bench.race import Race
from bench.timing import Work, alternate, microseconds
from training.engines.compiler import compiler_problem

__all__ = ["bare_step", "measure"]

_STEPS = 500
_BESIDE_EAGER = 1 / 2.5


def measure(folder: Path, effort: Effort) -> list[Figure]:
    """Each loop beside bare stepping and matrix products, and beside an eager loop.

    The eager loop runs the same algorithm with the eager engine and acts through torch's modules;
    all loops run with Lightning, logs, checkpoints and progress bar at their default settings.
    """
    setups = [LoopSetup("fused"), LoopSetup("eager", engine="eager", torch_acting=True)]
    if effort.compiled_loop and compiler_problem() is None:
        setups.insert(1, LoopSetup("compiled", engine="compiled"))
    with Race(setups, folder) as race:
        works: dict[str, Work] = {name: _rate(turn) for name, turn in race.works.items()}
        samples = alternate(works | {"bare": _bare_rate()}, effort.repeats(12), warm=1)
    return _figures(samples)


def _rate(turn: Callable[[], Any]) -> Work:
    return lambda: float(turn().rate)


def _figures(samples: Mapping[str, list[float]]) -> list[Figure]:
    details = {"environment": ENVIRONMENT, "updates_per_step": 1, "batch": BATCH}
    figures = []
    for name in samples:
        if name != "bare":
            title = "bare gymnasium and matrix products"
            rates = (samples[name], samples["bare"])
            figures.append(Figure.of(f"loop, {name}", "steps/s", *rates, title, details=details))
    return figures + [
        Figure.of(
            f"loop, {name}, beside an eager loop",
            "steps/s",
            samples[name],
            samples["eager"],
            "eager engine, torch acting",
            target=_BESIDE_EAGER,
            details=details,
        )
        for name in samples
        if name not in ("bare", "eager")
    ]


def _bare_rate() -> Work:
    """Steps a second of the environment alone and the products of one act and one update."""
    sizes = layer_sizes(OBSERVATIONS, ACTIONS, (HIDDEN, HIDDEN))
    parts = (
        bare_step(),
        microseconds(act_products(sizes)),
        microseconds(update_products(sizes, BATCH)),
    )
    return lambda: 1e6 / sum(part() for part in parts)


def bare_step() -> Work:
    """Microseconds of a step of bare Hopper, resets included, with actions drawn beforehand."""
    env = gymnasium.make(ENVIRONMENT)
    actions = np.random.default_rng(0).uniform(-1, 1, (_STEPS, ACTIONS)).astype(np.float32)

    def steps() -> None:
        env.reset(seed=0)
        for action in actions:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()

    whole = microseconds(steps, calls=1)
    return lambda: whole() / _STEPS
