"""Appending: microseconds a step with all columns, the commit record and its checksums."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

import storage
from bench.cheetah import EPISODE, Steps, spec
from bench.effort import Effort
from bench.figure import Figure
from bench.timing import Work, alternate, microseconds
from storage.writer import Writer

__all__ = ["append_episode", "measure"]

_MOST = 3.5
"""Microseconds a step."""


def measure(folder: Path, effort: Effort) -> list[Figure]:
    """Whole episodes through the writer, beside the same values into arrays in memory."""
    steps = Steps.random()
    with storage.create(folder / "store", spec()) as store, store.writer(lanes=1) as writer:
        columns = {c.name: np.zeros((EPISODE + 1, *c.shape), c.dtype) for c in store.schema.columns}
        samples = alternate(
            {
                "append": _per_step(lambda: append_episode(writer, steps)),
                "arrays": _per_step(lambda: _store_only(columns, steps)),
            },
            effort.repeats(100),
        )
        row_bytes = store.schema.row_bytes
    return [
        Figure.of(
            "append a step",
            "µs",
            samples["append"],
            samples["arrays"],
            "the same values into numpy arrays",
            most=_MOST,
            details={"row_bytes": row_bytes, "columns": len(columns), "episode": EPISODE},
        )
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


def _per_step(episode: Callable[[], None]) -> Work:
    whole = microseconds(episode, calls=1)
    return lambda: whole() / EPISODE
