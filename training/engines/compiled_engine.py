"""The compiled engine: loss, gradients, clipping and the optimizer's formula as one graph."""

from __future__ import annotations

import math
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import torch

from storage.errors import ConfigError
from training.engines.adam import AdamRule
from training.engines.compile_report import compile_error, compiling_quietly
from training.engines.compiler import compiler_problem
from training.engines.update_rule import apply_gradients, check_limit

if TYPE_CHECKING:
    from torch import Tensor
    from torch.optim import Optimizer

    from training.engines.update_rule import RuleMaker
    from training.stage import Feedback, Parameters, Schedule, Stage

__all__ = ["CompiledEngine"]


class CompiledEngine:
    """Runs a stage's whole update as one graph of `torch.compile` (an `Engine`).

    The first update compiles, for some twenty seconds; later processes take the code from torch's
    cache. Numbers that change between updates are 0-dim tensors, so that nothing compiles twice.
    An update that cannot be compiled leaves parameters and optimizer as they were.

    Args:
        stage, parameters, optimizer, max_gradient_norm, rule: As of `EagerEngine`.

    Raises:
        ConfigError: the optimizer is not of the rule's kind, or its groups do not own exactly
            these parameters, or there is no compiler.

    """

    name = "compiled"

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
        problem = compiler_problem(_device(parameters))
        if problem is not None:
            raise ConfigError(f"engine: compiled is not possible here: {problem}")
        self._stage = stage
        self._parameters = dict(parameters)
        self._optimizer = optimizer
        self._max_norm = max_gradient_norm
        self._make_rule = rule
        self.bind()

    def bind(self) -> None:
        """Take hold of the optimizer's present state tensors; create those that are absent."""
        self._rule = self._make_rule(self._optimizer, self._parameters)
        update = _with_code_of_its_own(self._whole_update)
        self._compiled: Any = torch.compile(update, fullgraph=True, dynamic=False)
        self._run = self._compile

    def update(self, batch: Any, schedule: Schedule) -> Feedback:
        """Run one update; feedback of the stage, with ``loss`` and ``gradient_norm`` (0-dim).

        Raises:
            CompileError: the first update since `bind` could not be compiled; nothing has changed.

        """
        with torch.no_grad():
            feedback: Feedback = self._run(batch, dict(schedule))
        return feedback

    def _compile(self, batch: Any, schedule: dict[str, Tensor]) -> Feedback:
        """The first update, which compiles; whatever fails in it is undone."""
        changed = list(self._rule.tensors)
        before = [tensor.clone() for tensor in changed]
        try:
            with compiling_quietly():
                feedback: Feedback = self._compiled(batch, schedule)
        except Exception as error:
            torch._foreach_copy_(changed, before)
            raise compile_error(error) from None
        self._run = self._compiled
        return feedback

    def _whole_update(self, batch: Any, schedule: Schedule) -> Feedback:
        gradients_of, (loss, feedback) = torch.func.grad_and_value(
            lambda parameters: self._stage(parameters, batch, schedule), has_aux=True
        )(self._parameters)
        gradients = [gradients_of[name] for name in self._parameters]
        norm = apply_gradients(self._rule, gradients, schedule, self._max_norm)
        whole: Feedback = feedback | {"loss": loss, "gradient_norm": norm}
        return whole


def _with_code_of_its_own(method: Any) -> MethodType:
    """The same method; torch, which refuses to compile one code more than eight times, takes it
    for another, so that any number of engines may be compiled in a process.
    """
    function: FunctionType = method.__func__
    copied = FunctionType(
        function.__code__.replace(),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    return MethodType(copied, method.__self__)


def _device(parameters: Parameters) -> str:
    return next(iter(parameters.values())).device.type
