"""Durability: what storing costs the collecting loop, to the process and to the device."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from bench.cheetah import ENVIRONMENT
from bench.collecting import advance, cheetah_policy, storing
from bench.effort import Effort
from bench.figure import Figure
from bench.forgetful_writer import ForgetfulWriter
from bench.timing import alternate, per_second
from training.assembly import make_lanes
from training.collector import Collector

__all__ = ["measure"]

_WITHOUT_WRITER: Final = 1 / 0.9
_GROUP: Final = 10
"""Episodes that wait for each other."""


def measure(folder: Path, effort: Effort) -> list[Figure]:
    """The collector at each level of durability, beside the same loop without a writer."""
    config, spec, policy = cheetah_policy()
    levels: dict[str, dict[str, Any]] = {
        "process": {"durability": "process"},
        "fsync": {"durability": "fsync"},
        f"fsync of {_GROUP} episodes": {"durability": "fsync", "sync_episodes": _GROUP},
    }
    with ExitStack() as stack:
        lanes = make_lanes(config)
        stack.callback(lanes.close)
        without = Collector(lanes, ForgetfulWriter(), policy, seed=0)  # type: ignore[arg-type]
        works = {"without": per_second(lambda: advance(without))}
        for name, options in levels.items():
            path = folder / name.replace(" ", "-")
            collect = stack.enter_context(storing(path, config, spec, policy, **options))
            works[name] = per_second(collect)
        samples = alternate(works, effort.repeats(40, least=5))
    return [
        Figure.of(
            f"collect, {name}",
            "steps/s",
            samples[name],
            samples["without"],
            "the same without a writer",
            target=_WITHOUT_WRITER if name == "process" else None,
            details={"environment": ENVIRONMENT, "policy": "V-RACER, untrained", "lanes": 1},
        )
        for name in levels
    ]
