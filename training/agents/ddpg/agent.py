"""DDPG with remember-and-forget experience replay as a Lightning module."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

from storage.spaces import space_size
from training.agents.ddpg.config import DdpgConfig
from training.agents.ddpg.gradient import ActorGradient, CriticGradient, JointGradient
from training.agents.ddpg.network import DdpgNetworks
from training.agents.ddpg.stage import ActorStage, CriticStage, JointStage
from training.agents.noisy_learner import NoisyLearner
from training.engines.adam import make_adam
from training.engines.engine_making import make_engine
from training.engines.engine_sequence import EngineSequence
from training.engines.following import following
from training.engines.mlp_pass import has_passes
from training.learner import Learner, network_generator
from training.refer import annealed

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from storage import EnvironmentSpec
    from training.batches.transition_batch import TransitionBatch
    from training.config import RunConfig
    from training.engines.engine import Engine

__all__ = ["Ddpg"]

_ACTOR_RATE = "actor_rate"


class Ddpg(NoisyLearner):
    """DDPG (Lillicrap et al. 2016), as ReF-ER blends it: section 2 and eqs. 2, 3 and 10.

    The policy is a Gaussian of fixed deviation around the actor's mean. Both networks see the raw
    action, which the environment's box clips, as the authors' code has it.

    Args:
        config: The run's settings.
        spec: Name and spaces of the environment; every action must be continuous.

    Raises:
        UnsupportedSpaceError: an action space with a part that is no box.
    """

    settings = DdpgConfig
    schedule = (*Learner.schedule, _ACTOR_RATE)

    def __init__(self, config: RunConfig, spec: EnvironmentSpec) -> None:
        size = space_size(spec.observation_space, "observation")
        super().__init__(config, spec, size)
        own = self._own
        actions = space_size(spec.action_space, "action")
        self.networks = DdpgNetworks(size, actions, own, network_generator(config.seed))
        self.act_with(self.networks.actor)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """One Adam with a group for each network; rates come from the schedule."""
        networks, own = self.networks, self._own
        groups: Any = [
            {
                "params": list(networks.critic.parameters()),
                "weight_decay": own.critic_weight_decay,
            },
            {"params": list(networks.actor.parameters()), "rate": _ACTOR_RATE},
        ]
        return make_adam(groups, learning_rate=own.learning_rate)

    def make_engine(self, optimizer: torch.optim.Optimizer, recorded: str | None) -> Engine:
        """One engine for both losses, or one after the other; the targets follow at the end."""
        networks, own = self.networks, self._own
        rate = own.target_rate
        options: Any = {
            "wish": own.engine,
            "updates": self.planned_updates,
            "max_gradient_norm": own.max_gradient_norm,
        }
        last = {"rule": following(networks.following, rate)} | options
        rules, losses = own.refer, (own.refer, own.discount)
        if own.order == "simultaneous":
            both = networks.parameters_of("actor", "critic")
            last["closed_form"] = self._by_hand(JointGradient, *losses, rate)
            joint = JointStage(networks, *losses)
            return make_engine(joint, both, optimizer, recorded=recorded, **last)
        critic, actor = (
            dict(each.named_parameters()) for each in (networks.critic, networks.actor)
        )
        last["closed_form"] = self._by_hand(ActorGradient, rules, rate)
        options["closed_form"] = self._by_hand(CriticGradient, *losses)
        first = partial(make_engine, CriticStage(networks, *losses), critic, optimizer, **options)
        second = partial(make_engine, ActorStage(networks, rules), actor, optimizer, **last)
        return EngineSequence([first, second], recorded)

    def _by_hand(self, kind: Any, *settings: Any) -> Any:
        """Maker of a closed form for the networks, or None where they have none."""
        critic = self.networks.critic
        if critic.before is not None or not has_passes(critic.after):
            return None
        return partial(kind, self.networks, *settings)

    def errors(self, batch: TransitionBatch) -> Tensor:
        """|Q_target - Q| of each step of a batch, (batch,)."""
        parameters = dict(self.networks.critic.named_parameters())
        stage = CriticStage(self.networks, self._own.refer, self._own.discount)
        return stage(parameters, batch, self._schedule)[1]["priority_error"]

    def rates(self, done: int) -> dict[str, float]:
        """Learning rates of critic and actor after so many updates."""
        own = self._own
        return super().rates(done) | {
            _ACTOR_RATE: annealed(own.actor_learning_rate, own.refer.annealing, done)
        }

    @property
    def _own(self) -> DdpgConfig:
        return cast("DdpgConfig", self.config.agent)
