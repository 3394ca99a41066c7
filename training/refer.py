"""Remember-and-forget experience replay: its settings, schedules, and the blended loss.

Rule 1 drops the gradients of far-policy steps; rule 2 weighs what is left against the divergence
from the behaviour (ReF-ER eqs. 10 to 13). Every agent blends through `blend`, and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from storage.errors import ConfigError
from training.setting_checks import FLOAT32_MAX

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "PRESETS",
    "ReferSettings",
    "annealed",
    "beta_rate",
    "blend",
    "far_bound",
    "near_mask",
    "next_beta",
    "preset",
]

_BETA_RATE_OVER_MEMORY = 0.1
"""The factor of 0.1 * batch / memory, which is 1e-4 at the paper's batch of 256 of 2^18 steps."""

_AT_LEAST_0 = f"at least 0 and at most {FLOAT32_MAX:.3g}, what float32 holds"
_ALL_FAR = (
    "c = 0 makes every step far, so that nothing is learnt; for plain ER, which the authors' "
    "scripts call C = 0, set rule_1 and rule_2 to false"
)


@dataclass(frozen=True, slots=True)
class ReferSettings:
    """What ReF-ER does to an agent. The defaults are the full method, at the paper's constants."""

    rule_1: bool = True
    """Rule 1: steps that the policy has moved far away from count in the divergence of rule 2
    only, not in the loss."""
    rule_2: bool = True
    """Rule 2: minimise beta * loss + (1 - beta) * divergence from the behaviour policy, the one
    that acted; off: the loss alone."""
    c: float = 4.0
    """A step is far where the importance ratio, policy over behaviour, is above the bound or below
    its inverse; the bound starts at 1 + c (C of eq. 13). Far steps are counted even where both
    rules are off."""
    annealing: float = 5e-7
    """A of eq. 13: the bound's part above 1 and the learning rate are divided by
    1 + annealing * updates."""
    far_target: float = 0.1
    """Fraction of far steps in the replay memory that beta is steered to (D of eq. 12)."""
    beta_initial: float = 0.0
    """beta before the first update: 0 only holds the policy near its behaviour, 1 only improves
    it. Not used without rule 2, where beta is 1."""
    beta_rate: Literal["memory", "learning_rate"] = "memory"
    """How far an update moves beta (eq. 12): 0.1 * batch size / steps in the replay memory (at
    least the window's size), or by the annealed learning rate."""
    divergence: Literal["behaviour_policy", "policy_behaviour"] = "behaviour_policy"
    """Direction of the Kullback-Leibler divergence: KL(behaviour || policy), as in the ReF-ER
    paper, or KL(policy || behaviour), as in its authors' code."""

    def __post_init__(self) -> None:
        """Refuse values outside their range, naming them all."""
        wrong = [text for ok, text in self._checks() if not ok]
        if wrong:
            raise ConfigError("impossible ReF-ER settings: " + "; ".join(wrong))

    @property
    def beta_start(self) -> float:
        """Return beta at the first update: 1 where rule 2 is off."""
        return self.beta_initial if self.rule_2 else 1.0

    def _checks(self) -> list[tuple[bool, str]]:
        return [
            *(
                (0 <= value <= FLOAT32_MAX, f"{name} = {value} must be {_AT_LEAST_0}")
                for name, value in (("c", self.c), ("annealing", self.annealing))
            ),
            (self.c > 0 or not (self.rule_1 or self.rule_2), _ALL_FAR),
            (0 < self.far_target < 1, f"far_target = {self.far_target} must lie in (0, 1)"),
            (0 <= self.beta_initial <= 1, f"beta_initial = {self.beta_initial} must lie in [0, 1]"),
            (
                self.beta_rate in ("memory", "learning_rate"),
                f"beta_rate = {self.beta_rate!r} must be 'memory' or 'learning_rate'",
            ),
            (
                self.divergence in ("behaviour_policy", "policy_behaviour"),
                f"divergence = {self.divergence!r} must be behaviour_policy or policy_behaviour",
            ),
        ]


PRESETS: dict[str, ReferSettings] = {
    "ER": ReferSettings(rule_1=False, rule_2=False),
    "ReF-ER-1": ReferSettings(rule_2=False),
    "ReF-ER-2": ReferSettings(rule_1=False),
    "ReF-ER": ReferSettings(),
}
"""The four variants that the paper compares."""


def preset(name: str) -> ReferSettings:
    """Return the paper's variant of that name.

    Raises:
        ConfigError: there is no variant of that name.

    """
    if name not in PRESETS:
        raise ConfigError(f"no ReF-ER variant {name!r}; choose one of {', '.join(PRESETS)}")
    return PRESETS[name]


def annealed(value: float, annealing: float, update: int) -> float:
    """Return value / (1 + A t), annealed by eq. 13 at update t, counted since learning began."""
    return value / (1.0 + annealing * update)


def far_bound(settings: ReferSettings, update: int) -> float:
    """c_max of eq. 13: a step is far where its ratio leaves [1 / c_max, c_max]."""
    return 1.0 + annealed(settings.c, settings.annealing, update)


def beta_rate(
    settings: ReferSettings, *, batch_size: int, window: int, stored: int, learning_rate: float
) -> float:
    """Rate of beta's update: by the memory's size, or the annealed learning rate (paper)."""
    if settings.beta_rate == "learning_rate":
        return learning_rate
    return _BETA_RATE_OVER_MEMORY * batch_size / max(window, stored)


def next_beta(settings: ReferSettings, beta: float, *, rate: float, far_fraction: float) -> float:
    """Return beta after one update (eq. 12): shrinks while more than D of the memory is far.

    Without rule 2 it stays 1. ``far_fraction`` is n_far / N of the steps that are stored.
    """
    if not settings.rule_2:
        return 1.0
    shrunk = (1.0 - rate) * beta
    return shrunk if far_fraction > settings.far_target else shrunk + rate


def near_mask(importance_ratio: Tensor, bound: Tensor) -> Tensor:
    """True where 1 / c_max <= rho <= c_max; ties are near."""
    return (importance_ratio <= bound) & (importance_ratio >= bound.reciprocal())


def blend(
    settings: ReferSettings,
    beta: Tensor,
    near: Tensor,
    sampling_weight: Tensor,
    *,
    policy_loss: Tensor | None = None,
    divergence: Tensor | None = None,
    value_loss: Tensor | None = None,
    beta_on_value: bool = False,
) -> Tensor:
    """Mean loss whose gradient at the network's outputs is ReF-ER's blend (eq. 10).

    ``policy_loss``, ``value_loss`` and ``divergence`` are per step, shape (batch,). Near steps get
    ``beta * policy_loss`` and ``value_loss`` (times beta if ``beta_on_value``: V-RACER's value,
    not DDPG's critic nor NAF's V and L); far steps get neither; every step gets
    ``(1 - beta) * divergence``. Switched-off rules leave their part out, so that not even an
    infinite divergence reaches the gradient. ``sampling_weight`` multiplies the whole.
    """
    losses: list[Tensor] = []
    if policy_loss is not None:
        losses.append(beta * policy_loss if settings.rule_2 else policy_loss)
    if value_loss is not None:
        losses.append(beta * value_loss if settings.rule_2 and beta_on_value else value_loss)
    loss = (
        sum(losses[1:], start=losses[0])
        if losses
        else sampling_weight.new_zeros(sampling_weight.shape)
    )
    if settings.rule_1:
        loss = near * loss
    if divergence is not None and settings.rule_2:
        loss = loss + (1.0 - beta) * divergence
    return (sampling_weight * loss).mean()
