"""Cost curves of lanes: collecting and the whole loop, steps a second against lanes."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bench.collecting import cheetah_policy, storing
from bench.effort import Effort
from bench.figure import Figure, Point
from bench.loop_setup import LoopSetup
from bench.race import Race
from bench.timing import Work, alternate, per_second

__all__ = ["KINDS", "LANES", "measure"]

LANES: Final = (1, 2, 4, 8)
KINDS: Final = ("serial", "sync", "async")
_ONE: Final = "serial 1"


def measure(folder: Path, effort: Effort) -> list[Figure]:
    """One figure for each kind and number of lanes, beside one serial lane."""
    figures = []
    for kind in KINDS:
        figures += _collecting(folder / f"collect-{kind}", kind, effort)
    for kind in KINDS:
        figures += _looping(folder / f"loop-{kind}", kind, effort)
    return figures


def _names(kind: str) -> dict[str, tuple[Any, int]]:
    """Name to kind and lanes, one serial lane always among them."""
    wanted = [(kind, count) for count in LANES]
    return {f"{each} {count}": (each, count) for each, count in [("serial", 1), *wanted]}


def _collecting(folder: Path, kind: str, effort: Effort) -> list[Figure]:
    folder.mkdir()
    config, spec, policy = cheetah_policy()
    works: dict[str, Work] = {}
    with ExitStack() as stack:
        for name, (each, count) in _names(kind).items():
            loop = replace(config.loop, lanes=count, lane_kind=each, steps=count * 10**6)
            lanes = replace(config, loop=replace(loop, round_steps=64))
            collect = stack.enter_context(storing(folder / name, lanes, spec, policy))
            works[name] = per_second(collect)
        samples = alternate(works, effort.repeats(8), warm=1)
    return _figures("collect against lanes", kind, samples)


def _looping(folder: Path, kind: str, effort: Effort) -> list[Figure]:
    setups = [
        LoopSetup(name, lanes=count, lane_kind=each) for name, (each, count) in _names(kind).items()
    ]
    with Race(setups, folder) as race:
        stretches = alternate(race.works, effort.repeats(6), warm=1)
    samples = {name: [each.rate for each in made] for name, made in stretches.items()}
    return _figures("loop against lanes", kind, samples)


def _figures(curve: str, kind: str, samples: dict[str, list[float]]) -> list[Figure]:
    return [
        Figure.of(
            f"{curve}, {name}",
            "steps/s",
            values,
            samples[_ONE],
            "one serial lane",
            place=Point(curve, kind, int(name.split()[1])),
        )
        for name, values in samples.items()
        if name.startswith(kind)
    ]
