"""What agents that act by a mean with fixed noise, and learn from targets, have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from storage.errors import UnsupportedSpaceError
from training.agent_config import AgentConfig
from training.setting_checks import check_positive, check_stdev, require

if TYPE_CHECKING:
    from storage import EnvironmentSpec

__all__ = ["NoisyConfig"]


@dataclass(frozen=True, slots=True)
class NoisyConfig(AgentConfig):
    """Settings of DDPG and NAF: the noise around the mean, the target network, the layers.

    Args:
        target_rate: tau, the part of the way that target networks go towards the learnt ones at
            each update.
        stdev: Standard deviation of the noise, in half-ranges of the action box. Importance ratios
            and divergences are those of a Gaussian of this deviation around the mean.
        noise: "gaussian", independent at each step, or "ornstein_uhlenbeck", correlated along an
            episode; the remember-and-forget rules need the former.
        bounded_mean: The mean goes through tanh, so that it stays inside the action box.
        activation: What hidden layers apply to their sums.
        initialisation: Of hidden layers: "glorot", or "fan_in" as in the paper of DDPG.
        residual: Adds a layer's input to its output where both have the same size.
        output_bound: Initial weights and biases of the last layer lie within plus or minus this;
            without it weights lie within 0.1 / sqrt(inputs), and biases are 0.
    """

    target_rate: float = 0.01
    stdev: float = 0.2
    noise: Literal["gaussian", "ornstein_uhlenbeck"] = "gaussian"
    bounded_mean: bool = False
    activation: Literal["softsign", "relu", "tanh"] = "softsign"
    initialisation: Literal["glorot", "fan_in"] = "glorot"
    residual: bool = True
    output_bound: float | None = None

    def __post_init__(self) -> None:
        AgentConfig.__post_init__(self)
        rate = self.target_rate
        require(0 < rate <= 1, f"agent.target_rate is {rate}; it lies in (0, 1]")
        check_stdev("agent.stdev", self.stdev)
        if self.output_bound is not None:
            check_positive("agent.output_bound", self.output_bound)
        require(
            self.noise == "gaussian" or not (self.refer.rule_1 or self.refer.rule_2),
            f"agent.noise is {self.noise} while a rule of agent.refer is on: noise that is "
            "correlated along an episode has no density of one step alone, so importance ratios "
            "and divergences would be wrong; set agent.noise to gaussian, or both rules to false",
        )

    def check_spaces(self, spec: EnvironmentSpec) -> None:
        """Refuses what no box of actions is, and a bounded mean where the box has no bounds.

        Raises:
            UnsupportedSpaceError: naming the space and the remedy.
        """
        from training.acting.action_mapping import ActionMapping

        if self.bounded_mean and not ActionMapping(spec.action_space).bounded:
            raise UnsupportedSpaceError(
                f"agent.bounded_mean is on, but {spec.action_space!r} of {spec.id} is not bounded "
                "on every side, and tanh would keep the mean within ±1 there; set it to false, or "
                "bound the actions by a wrapper"
            )
        AgentConfig.check_spaces(self, spec)
