"""DQN's settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from storage.errors import ConfigError, UnsupportedSpaceError
from training.agent_config import AgentConfig
from training.agents.dqn.frames import LEAST_PIXELS, frame_shape
from training.refer import ReferSettings
from training.setting_checks import check_positive, require

if TYPE_CHECKING:
    from storage import EnvironmentSpec

__all__ = ["DqnConfig"]


def _plain_replay() -> ReferSettings:
    """Neither rule and no annealing, as in DQN's papers; far steps are counted all the same."""
    return ReferSettings(rule_1=False, rule_2=False, annealing=0.0)


@dataclass(frozen=True, slots=True)
class DqnConfig(AgentConfig):
    """DQN for one discrete action; the defaults are those of PSER's authors, Dopamine's dqn_icml.

    Args:
        kind: The agent's name.
        hidden: Sizes of the hidden layers; of "cnn" those behind the convolutions.
        scale_observations: As of every agent, but frames are divided by 255 instead.
        network: "cnn", the three convolutions of Mnih et al. 2015 for frames of 36 x 36 pixels or
            more; "mlp", over all numbers of an observation; or "auto", what the observation is.
        padding: Of convolutions: "same" as Dopamine has it, or "valid" (none) as the paper.
        activation: What hidden layers apply to their sums.
        dueling: Values of actions as V(s) + A(s, a) - mean A(s, .), of two streams which each have
            the last hidden layer's size.
        double: The learnt network chooses the next action, the target network values it.
        optimizer: "rmsprop", centred and with its epsilon inside the root, or "adam".
        rmsprop_decay: What RMSProp's averages keep at each update.
        rmsprop_epsilon: Added to the variance inside RMSProp's root.
        adam_epsilon: Added to Adam's root.
        target_interval: Updates between two copies to the target network. Papers count agent
            steps: 10,000 of them are 2,500 updates at ``loop.updates_per_step`` 0.25.
        loss: "huber", quadratic up to an error of 1, or "squared" (half the square).
        policy: "epsilon_greedy", or "softmax" of the values over ``temperature``.
        temperature: tau of the softmax.
        exploration_initial: Probability of a random action at the end of the warm-up.
        exploration_final: And from ``exploration_steps`` on.
        exploration_steps: Environment steps after the warm-up until then, linearly. The warm-up
            itself acts at random. The three are of "epsilon_greedy" alone: "softmax" draws from
            its policy from the first step on.
        evaluation_epsilon: Probability of a random action where evaluation is not greedy: of
            ``act(greedy=False)``, and of ``sharpwave protocol atari``.
        clip_rewards: Learns from rewards cut to [-1, 1]; the store and returns keep the whole.
        life_loss_ends: Nothing is bootstrapped across the loss of a life, where the store has
            ``life_lost``.
    """

    kind: Literal["dqn"] = "dqn"
    hidden: list[int] = field(default_factory=lambda: [512])
    discount: float = 0.99
    learning_rate: float = 2.5e-4
    batch_size: int = 32
    scale_rewards: bool = False
    refer: ReferSettings = field(default_factory=_plain_replay)
    network: Literal["auto", "mlp", "cnn"] = "auto"
    padding: Literal["same", "valid"] = "same"
    activation: Literal["relu", "softsign", "tanh"] = "relu"
    dueling: bool = False
    double: bool = False
    optimizer: Literal["rmsprop", "adam"] = "rmsprop"
    rmsprop_decay: float = 0.95
    rmsprop_epsilon: float = 1e-5
    adam_epsilon: float = 1e-8
    target_interval: int = 2500
    loss: Literal["huber", "squared"] = "huber"
    policy: Literal["epsilon_greedy", "softmax"] = "epsilon_greedy"
    temperature: float = 1.0
    exploration_initial: float = 1.0
    exploration_final: float = 0.01
    exploration_steps: int = 1_000_000
    evaluation_epsilon: float = 0.001
    clip_rewards: bool = False
    life_loss_ends: bool = True

    def __post_init__(self) -> None:
        AgentConfig.__post_init__(self)
        for name in ("rmsprop_epsilon", "adam_epsilon", "target_interval", "temperature"):
            check_positive(f"agent.{name}", getattr(self, name))
        for name in ("exploration_initial", "exploration_final", "evaluation_epsilon"):
            value = getattr(self, name)
            require(0 <= value <= 1, f"agent.{name} is {value}; it lies in [0, 1]")
        decay, steps = self.rmsprop_decay, self.exploration_steps
        require(0 <= decay < 1, f"agent.rmsprop_decay is {decay}; it lies in [0, 1)")
        require(steps >= 0, f"agent.exploration_steps is {steps}; it cannot be negative")
        require(
            not (self.clip_rewards and self.scale_rewards),
            "agent.clip_rewards and agent.scale_rewards are both on, but the scale is that of "
            "rewards as they are; switch one of them off",
        )
        if self.refer.rule_2 and self.policy == "epsilon_greedy":
            raise ConfigError(
                "agent.refer.rule_2 is on while agent.policy is epsilon_greedy: rule 2 moves the "
                "policy towards the behaviour by its gradient, and a greedy choice has none; set "
                "agent.policy to softmax, or agent.refer.rule_2 to false"
            )

    def exploration(self, step: int, warmup: int) -> float:
        """Probability of a random action at an environment step, counted from 0.

        1 during the warm-up, then linear from ``exploration_initial`` to ``exploration_final``.
        """
        since = step - warmup
        if since < 0:
            return 1.0
        if since >= self.exploration_steps:
            return self.exploration_final
        done = since / self.exploration_steps
        return self.exploration_initial + (self.exploration_final - self.exploration_initial) * done

    def check_spaces(self, spec: EnvironmentSpec) -> None:
        """Refuses actions other than one Discrete, and convolutions over what are no frames.

        Raises:
            UnsupportedSpaceError: the action space is another.
            ConfigError: ``network`` is "cnn", and the observations are no frames.
        """
        from gymnasium.spaces import Discrete

        if not isinstance(spec.action_space, Discrete):
            raise UnsupportedSpaceError(
                f"DQN acts in one Discrete space, not in {spec.action_space!r} of {spec.id}; for "
                "boxes choose agent.kind vracer, ddpg or naf, or wrap the environment"
            )
        if self.network == "cnn" and frame_shape(spec.observation_space) is None:
            raise ConfigError(
                f"agent.network is cnn, but {spec.id} shows {spec.observation_space!r}: "
                f"convolutions need one uint8 box of three dimensions, with {LEAST_PIXELS} x "
                f"{LEAST_PIXELS} pixels or more; choose agent.network mlp"
            )
