"""V-RACER's settings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from training.agent_config import AgentConfig
from training.setting_checks import check_stdev

__all__ = ["VRacerConfig"]


@dataclass(frozen=True, slots=True)
class VRacerConfig(AgentConfig):
    """V-RACER with remember-and-forget rules.

    Args:
        kind: The agent's name.
        residual: Adds a layer's input to its output where both have the same size.
        state_dependent_stdev: The standard deviation is a network output instead of free
            parameters.
        initial_stdev: Standard deviation of the initial policy, in half-ranges of the action box.
    """

    kind: Literal["vracer"] = "vracer"
    residual: bool = True
    state_dependent_stdev: bool = False
    initial_stdev: float = math.sqrt(0.2)

    def __post_init__(self) -> None:
        AgentConfig.__post_init__(self)
        check_stdev("agent.initial_stdev", self.initial_stdev)
