"""Appending: microseconds a step with all columns, the commit record and its checksums."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import storage
from bench.cheetah import EPISODE, Steps, spec
from bench.figure import Figure
from storage.writer import Writer

__all__ = ["append_episode", "measure"]

_EPISODES = 60


def measure(folder: Path) -> list[Figure]:
    store = storage.create(folder / "store", spec())
    steps = Steps.random()
    with store.writer(lanes=1) as writer:
        value = _median_per_step(lambda: append_episode(writer, steps))
    row_bytes = store.schema.row_bytes
    columns = {c.name: np.zeros((EPISODE + 1, *c.shape), c.dtype) for c in store.schema.columns}
    store.close()
    limit = _median_per_step(lambda: _store_only(columns, steps))
    details = {"row_bytes": row_bytes, "columns": len(columns), "episode_steps": EPISODE}
    return [
        Figure("append a step", "µs", value, limit, "the same values into numpy arrays", details)
    ]


def append_episode(writer: Writer, steps: Steps, lane: int = 0) -> None:
    """Writes one whole truncated episode."""
    writer.begin(lane, steps.observations[0], seed=1)
    for t in range(EPISODE):
        writer.step(
            lane,
            action=steps.actions[t],
            reward=steps.rewards[t],
            observation=steps.observations[t + 1],
            terminated=False,
            truncated=t == EPISODE - 1,
            raw_action=steps.raw_actions[t],
            behaviour=steps.behaviours[t],
            behaviour_kind=1,
            policy_update=0,
        )


def _store_only(columns: dict[str, np.ndarray], steps: Steps) -> None:
    observation, action, raw_action = (columns[k] for k in ("observation", "action", "raw_action"))
    reward, terminated, truncated = (columns[k] for k in ("reward", "terminated", "truncated"))
    kind, behaviour = columns["kind"], columns["behaviour"]
    behaviour_kind, update = columns["behaviour_kind"], columns["policy_update"]
    for t in range(EPISODE):
        observation[t + 1] = steps.observations[t + 1]
        action[t] = steps.actions[t]
        raw_action[t] = steps.raw_actions[t]
        reward[t] = steps.rewards[t]
        terminated[t] = False
        truncated[t] = t == EPISODE - 1
        behaviour[t] = steps.behaviours[t]
        behaviour_kind[t] = 1
        update[t] = 0
        kind[t] = 1


def _median_per_step(episode: Callable[[], None]) -> float:
    times = []
    for number in range(_EPISODES + 3):
        start = time.perf_counter_ns()
        episode()
        if number >= 3:
            times.append((time.perf_counter_ns() - start) / EPISODE / 1e3)
    return statistics.median(times)
