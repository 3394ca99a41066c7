"""Update engines: from a stage, a batch and a schedule to changed parameters."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

import torch

from training.engines.adam import AdamRule
from training.engines.update_rule import apply_gradients, check_limit

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from training.engines.update_rule import RuleMaker
    from training.stage import Feedback, Parameters, Schedule, Stage

__all__ = ["EagerEngine", "Engine"]


class Engine(Protocol):
    """One way to run an agent's updates.

    Contract. `bind` is called when training starts or resumes, after every checkpoint has been
    loaded; from then on the optimizer's state tensors are the engine's state, changed in place, so
    that the optimizer can be saved and resumed as if it had stepped itself. `update` must leave
    ``grad`` of every parameter None and read every changing number from the schedule's tensors.
    """

    @property
    def name(self) -> str:
        """What a checkpoint records, so that resuming never switches engines."""
        ...

    def bind(self) -> None:
        """Take hold of the optimizer's present state tensors; create those that are absent."""
        ...

    def update(self, batch: Any, schedule: Schedule) -> Feedback:
        """Run one update. The stage's feedback comes back, with ``loss`` and ``gradient_norm``."""
        ...


class EagerEngine:
    """Autograd, then the optimizer's formula on its own state tensors (an `Engine`).

    ``parameters`` are the stage's named parameters, one or more whole groups of ``optimizer``;
    learning rates are the schedule's, not the optimizer's. Gradients longer than
    ``max_gradient_norm`` (the L2 norm over all parameters) are shortened to it. ``rule`` is the
    formula, Adam's unless said otherwise.

    Raises:
        ConfigError: the optimizer is not of the rule's kind, or its groups do not own exactly
            these parameters.

    """

    name = "eager"

    def __init__(
        self,
        stage: Stage,
        parameters: Parameters,
        optimizer: Optimizer,
        *,
        max_gradient_norm: float = math.inf,
        rule: RuleMaker = AdamRule,
    ) -> None:
        check_limit(max_gradient_norm)
        self._stage = stage
        self._parameters = dict(parameters)
        self._tensors = list(parameters.values())
        self._optimizer = optimizer
        self._max_norm = max_gradient_norm
        self._make_rule = rule
        self.bind()

    def bind(self) -> None:
        """Take hold of the optimizer's present state tensors; create those that are absent.

        Call it in ``on_train_start``: loading an optimizer's state replaces its tensors.
        """
        self._rule = self._make_rule(self._optimizer, self._parameters)

    def update(self, batch: Any, schedule: Schedule) -> Feedback:
        """Run one update; feedback of the stage, with ``loss`` and ``gradient_norm`` (0-dim)."""
        loss, feedback = self._stage(self._parameters, batch, schedule)
        gradients = list(torch.autograd.grad(loss, self._tensors))
        with torch.no_grad():
            norm = apply_gradients(self._rule, gradients, schedule, self._max_norm)
        feedback["loss"] = loss.detach()
        feedback["gradient_norm"] = norm
        return feedback
