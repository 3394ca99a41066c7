"""What Lightning, logs, checkpoints and the progress bar add to a step of the loop."""

from __future__ import annotations

from pathlib import Path

from bench.effort import Effort
from bench.figure import Figure
from bench.loop_setup import ENVIRONMENT, STRETCH, Frame, LoopSetup
from bench.race import Race, Stretch
from bench.timing import alternate

__all__ = ["measure"]

_TARGET = 1.03
_RACES = 4
_ROWS = (
    ("Lightning", "fit", "direct", "the same rounds without a Trainer"),
    ("logs, checkpoints and bar", "whole", "fit", "Trainer.fit without them"),
)


def measure(folder: Path, effort: Effort) -> list[Figure]:
    """A step in Trainer.fit beside one without, and one with everything beside Trainer.fit.

    All three loops have one seed and do the same work, bit for bit. Processor time is given as
    well, which other programs of the machine disturb less; waiting for the disk is not in it.
    Where a process's memory happens to lie makes a loop some two per cent faster or slower for as
    long as it lives: hence several races, each in new processes.
    """
    frames: tuple[Frame, ...] = ("direct", "fit", "whole")
    setups = [LoopSetup(frame, frame=frame) for frame in frames]
    samples: dict[str, list[Stretch]] = {frame: [] for frame in frames}
    for number in range(effort.repeats(_RACES, least=2)):
        with Race(setups, folder / f"race-{number}") as race:
            done = alternate(race.works, effort.repeats(8), warm=1)
        for name, stretches in done.items():
            samples[name] += stretches
    figures = []
    for cpu in (False, True):
        times = {
            name: [stretch.microseconds(cpu=cpu) for stretch in stretches]
            for name, stretches in samples.items()
        }
        figures += [
            Figure.of(
                f"a step with {name}{', processor time' if cpu else ''}",
                "µs",
                times[value],
                times[limit],
                title,
                target=_TARGET,
                details={"environment": ENVIRONMENT, "steps_a_repeat": 64 * STRETCH},
            )
            for name, value, limit, title in _ROWS
        ]
    return figures
