"""DDPG's settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from training.agents.noisy_config import NoisyConfig
from training.setting_checks import FLOAT32_MAX, check_positive, require

__all__ = ["DdpgConfig"]


@dataclass(frozen=True, slots=True)
class DdpgConfig(NoisyConfig):
    """DDPG, by default as it was compared with and without ReF-ER.

    ``learning_rate`` is the critic's, ``hidden`` the layers of either network. ``gradient_clip`` is
    the largest norm of both gradients together where ``order`` is simultaneous, of each where it is
    sequential.

    Args:
        kind: The agent's name.
        batch_size: Steps in a batch.
        actor_learning_rate: The actor's initial rate, annealed as the critic's.
        critic_weight_decay: L2 of the critic: this times a weight is added to its gradient.
        critic_action_layer: Hidden layers of the critic before the action joins; 0: the action is
            an input, 1: it joins at the second layer, as in the paper of DDPG.
        order: "simultaneous" takes both gradients at the same weights; "sequential" lets the actor
            climb the critic that the same update has just changed, as common code does.
    """

    kind: Literal["ddpg"] = "ddpg"
    batch_size: int = 128
    actor_learning_rate: float = 1e-5
    critic_weight_decay: float = 1e-4
    critic_action_layer: int = 0
    order: Literal["simultaneous", "sequential"] = "simultaneous"

    def __post_init__(self) -> None:
        NoisyConfig.__post_init__(self)
        check_positive("agent.actor_learning_rate", self.actor_learning_rate)
        decay, joins = self.critic_weight_decay, self.critic_action_layer
        require(
            0 <= decay <= FLOAT32_MAX,
            f"agent.critic_weight_decay is {decay}; it lies between 0 and {FLOAT32_MAX:.3g}",
        )
        require(
            0 <= joins < len(self.hidden),
            f"agent.critic_action_layer is {joins}; with {len(self.hidden)} hidden layers it lies "
            f"between 0 and {len(self.hidden) - 1}",
        )
