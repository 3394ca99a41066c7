"""Collecting: environment steps a second with acting and storing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import storage
from bench.cheetah import ACTIONS, ENVIRONMENT, EPISODE
from bench.effort import Effort
from bench.figure import Figure
from bench.forgetful_writer import ForgetfulWriter
from bench.timing import alternate, per_second
from storage.environment_spec import EnvironmentSpec
from training.acting.policy import Policy
from training.assembly import make_agent, make_lanes
from training.collector import Collector
from training.config import RunConfig
from training.environments.environment import describe_environment
from training.environments.environment_config import EnvironmentConfig

__all__ = ["advance", "cheetah_policy", "measure", "play_bare", "play_hand_written", "storing"]

_WITHOUT_WRITER = 1 / 0.9


def measure(folder: Path, effort: Effort) -> list[Figure]:
    """The collector with the crash-safe writer, beside three loops that do less."""
    config, spec, policy = cheetah_policy()
    with ExitStack() as stack:
        lanes = make_lanes(config)
        stack.callback(lanes.close)
        without = Collector(lanes, ForgetfulWriter(), policy, seed=0)  # type: ignore[arg-type]
        env, actions = gymnasium.make(ENVIRONMENT), uniform_actions()
        stack.callback(env.close)
        collect = stack.enter_context(storing(folder / "store", config, spec, policy))
        samples = alternate(
            {
                "collect": per_second(collect),
                "without": per_second(lambda: advance(without)),
                "hand-written": per_second(lambda: play_hand_written(env, policy)),
                "bare": per_second(lambda: play_bare(env, actions)),
            },
            effort.repeats(40, least=5),
        )
    details = {"environment": ENVIRONMENT, "policy": "V-RACER, untrained", "lanes": 1}
    value = samples["collect"]
    rows = [
        ("collect", "bare", "bare gymnasium", None),
        ("collect, beside no writer", "without", "the same without a writer", _WITHOUT_WRITER),
        ("collect, beside a bare loop", "hand-written", "gymnasium and the policy's act", None),
    ]
    return [
        Figure.of(name, "steps/s", value, samples[limit], title, target=target, details=details)
        for name, limit, title, target in rows
    ]


def cheetah_policy() -> tuple[RunConfig, EnvironmentSpec, Policy]:
    """Settings with one lane, the environment's description, and V-RACER's untrained policy."""
    config = RunConfig(EnvironmentConfig(ENVIRONMENT))
    spec = describe_environment(config.environment)
    return config, spec, make_agent(config, spec).policy


@contextmanager
def storing(
    path: Path, config: RunConfig, spec: EnvironmentSpec, policy: Policy, **writing: Any
) -> Iterator[Callable[[], int]]:
    """What collects one more episode a lane into a new store; the steps it took.

    `writing` are more arguments of the store's writer.
    """
    lanes = make_lanes(config)
    try:
        count = config.loop.lanes
        with storage.create(path, spec) as store, store.writer(lanes=count, **writing) as writer:
            collector = Collector(lanes, writer, policy, seed=0)
            yield lambda: advance(collector, EPISODE * count)
    finally:
        lanes.close()


def advance(collector: Collector, steps: int = EPISODE) -> int:
    """Lets the collector take so many steps."""
    end = collector.steps + steps
    while collector.steps < end:
        collector.advance()
    return steps


def uniform_actions() -> list[Any]:
    """Actions of an episode, drawn beforehand."""
    draw = np.random.default_rng(0)
    return list(draw.uniform(-1, 1, (EPISODE, ACTIONS)).astype(np.float32))


def play_bare(env: gymnasium.Env[Any, Any], actions: list[Any]) -> int:
    """Plays one episode of the environment alone; its steps."""
    env.reset(seed=0)
    for action in actions:
        env.step(action)
    return len(actions)


def play_hand_written(env: gymnasium.Env[Any, Any], policy: Policy) -> int:
    """Plays one episode with the policy, as one writes it by hand; its steps."""
    observation, _ = env.reset(seed=0)
    for step in range(EPISODE):
        decision = policy.act(0, step, observation)
        observation, _, _, _, _ = env.step(decision.action)
    return EPISODE
