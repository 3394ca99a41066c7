"""What the settings of every agent have in common."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from training.refer import ReferSettings
from training.setting_checks import check_fields, check_positive, require

if TYPE_CHECKING:
    from storage import EnvironmentSpec

__all__ = ["AgentConfig"]


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """Settings that every agent has; each agent's own class adds to them.

    Args:
        kind: The agent's name, or the class path of one of your own.
        hidden: Sizes of the hidden layers.
        discount: Discount factor, in (0, 1].
        learning_rate: The optimizer's initial rate; annealed by ``refer.annealing``.
        batch_size: Steps in a batch.
        gradient_clip: Largest norm of the gradient; unlimited by default.
        scale_observations: Normalises observations by the replay memory's mean and deviation.
        scale_rewards: Divides rewards by the root mean square over the replay memory.
        scaling_interval: Updates between two moves of the statistics and recounts of far steps.
        acting_interval: Updates between two copies of the weights from a GPU to the host, where
            acting happens; on the CPU acting always sees the newest weights. A run that is resumed
            begins with a copy, so that it goes on as a straight one only where this is 1.
        engine: What runs the updates: "fused" (gradients by hand), "compiled" (torch.compile),
            "eager", or "auto", the fastest that fits. A resumed run keeps its engine.
        refer: The remember-and-forget rules.
    """

    kind: str
    hidden: list[int] = field(default_factory=lambda: [128, 128])
    discount: float = 0.995
    learning_rate: float = 1e-4
    batch_size: int = 256
    gradient_clip: float | None = None
    scale_observations: bool = True
    scale_rewards: bool = True
    scaling_interval: int = 1000
    acting_interval: int = 1
    engine: Literal["auto", "eager", "compiled", "fused"] = "auto"
    refer: ReferSettings = field(default_factory=ReferSettings)

    def __post_init__(self) -> None:
        check_fields("agent", self)
        sizes = len(self.hidden) > 0 and all(size > 0 for size in self.hidden)
        require(sizes, f"agent.hidden is {self.hidden}; give at least one positive size")
        require(0 < self.discount <= 1, f"agent.discount is {self.discount}; it lies in (0, 1]")
        for name in ("learning_rate", "batch_size", "scaling_interval", "acting_interval"):
            check_positive(f"agent.{name}", getattr(self, name))
        if self.gradient_clip is not None:
            check_positive("agent.gradient_clip", self.gradient_clip)

    @property
    def max_gradient_norm(self) -> float:
        """Norm that longer gradients are shortened to; infinite for none."""
        return math.inf if self.gradient_clip is None else self.gradient_clip

    def check_spaces(self, spec: EnvironmentSpec) -> None:
        """Refuses spaces that the agent cannot act in; by default it acts in boxes alone.

        Called before a run has a folder, without torch.

        Raises:
            UnsupportedSpaceError: naming the space and the remedy.
        """
        from training.acting.action_mapping import ActionMapping

        ActionMapping(spec.action_space)
