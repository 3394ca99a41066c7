"""What Lightning, logs, checkpoints and the progress bar add to a step of the loop."""

from __future__ import annotations

from pathlib import Path

from bench.effort import Effort
from bench.figure import Figure
from bench.loop_setup import ENVIRONMENT, STRETCH, LoopSetup
from bench.race import Race
from bench.timing import alternate

__all__ = ["measure"]

_TARGET = 1.03
_ROWS = (
    ("Lightning", "fit", "direct", "the same rounds without a Trainer"),
    ("logs, checkpoints and bar", "whole", "fit", "Trainer.fit without them"),
)


def measure(folder: Path, effort: Effort) -> list[Figure]:
    """A step in Trainer.fit beside one without, and one with everything beside Trainer.fit.

    All three loops have one seed and do the same work, bit for bit. Processor time is given as
    well, which other programs of the machine disturb less; waiting for the disk is not in it.
    """
    setups = [
        LoopSetup("direct", frame="direct"),
        LoopSetup("fit", frame="fit"),
        LoopSetup("whole", frame="whole"),
    ]
    with Race(setups, folder) as race:
        samples = alternate(race.works, effort.repeats(24, least=4), warm=1)
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
