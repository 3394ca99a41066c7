"""The training runs behind the results page: their names, settings and budgets."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Final

__all__ = ["TRIALS", "Trial"]

_SEEDS: Final = (0, 1, 2)
_TASKS: Final = ("hopper", "halfcheetah")
_AGENTS: Final = ("vracer", "ddpg", "naf")
_RULES: Final = ("er", "per", "refer")

_GAMES: Final = {"Pong": 500_000, "Freeway": 250_000}
"""Steps of each: what two cores take, two runs side by side, in an hour and a half."""
_SCHEMES: Final = {"per": "per_maxprio", "pser": "pser_maxprio_max"}

_OWN: Final = {"vracer": (), "ddpg": ("configs/ddpg.yaml",), "naf": ("configs/naf.yaml",)}
"""Files of the agents; V-RACER is the default one."""
_SMALL: Final = "--replay.window=16384"
"""N for InvertedPendulum: in 2^18 the first, short episodes stay, and NAF's Q outgrows them."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One run: what `sharpwave train` is called with, and the width of its bins."""

    name: str
    """Of the run: group, then seed."""
    words: tuple[str, ...]
    """Files and options of the command, without name and seed."""
    bin_steps: int

    @property
    def group(self) -> str:
        """The runs that differ in their seeds alone."""
        return self.name.rpartition("-")[0]

    @property
    def seed(self) -> int:
        """The run's seed."""
        return int(self.name.rpartition("-")[2])


def _trials() -> list[Trial]:
    pendulum = ("configs/inverted_pendulum.yaml",)
    found = [Trial(f"cartpole-dqn-{seed}", ("configs/cartpole.yaml",), 10_000) for seed in _SEEDS]
    found += [
        Trial(f"pendulum-{agent}-{seed}", (*pendulum, *_OWN[agent], _SMALL), 10_000)
        for agent, seed in product(_AGENTS, _SEEDS)
    ]
    found += [
        Trial(
            f"{task}-{agent}-{rules}-{seed}",
            (
                f"configs/refer/{agent}/{rules}.yaml",
                f"configs/refer/tasks/{task}.yaml",
                "configs/refer/laptop.yaml",
            ),
            20_000,
        )
        for seed, task, agent, rules in product(_SEEDS, _TASKS, _AGENTS, _RULES)
    ]
    found += [
        Trial(
            f"{game.lower()}-dqn-{scheme}-0",
            (
                f"configs/pser/{file}.yaml",
                "configs/pser/laptop.yaml",
                f"--environment.id=Atari/{game}",
                f"--loop.steps={steps}",
            ),
            25_000,
        )
        for (game, steps), (scheme, file) in product(_GAMES.items(), _SCHEMES.items())
    ]
    return found


TRIALS: Final = _trials()
"""All of them, the quickest to tell something first."""
