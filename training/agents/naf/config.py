"""NAF's settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from training.agents.noisy_config import NoisyConfig

__all__ = ["NafConfig"]


@dataclass(frozen=True, slots=True)
class NafConfig(NoisyConfig):
    """Normalized advantage functions, as the ReF-ER paper uses them.

    Args:
        kind: The agent's name.
        diagonal: Makes the diagonal of the advantage's matrix positive: "smooth" by
            (x + sqrt(1 + x^2)) / 2, "exp" by the exponential function, as in NAF's paper.
    """

    kind: Literal["naf"] = "naf"
    diagonal: Literal["smooth", "exp"] = "smooth"
