"""Stages: an agent's losses, as pure functions of one parameter group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.func import functional_call

from training.device import HOST, MirroredBlock

__all__ = ["Feedback", "Parameters", "PureModule", "Schedule", "ScheduleTensors", "Stage"]

Parameters = Mapping[str, Tensor]
"""Named parameters of one group, as `torch.nn.Module.named_parameters` names them."""

Schedule = Mapping[str, Tensor]
"""0-dim tensors that change between updates: ``learning_rate``, ``beta``, ``far_bound``, …"""

Feedback = dict[str, Tensor]
"""Detached tensors that go back to the replay view or to the log, most of them (batch,)."""


class Stage(Protocol):
    """A loss over one parameter group.

    Contract. Called by an engine, once an update, possibly while it traces or compiles; gets the
    parameters to differentiate by, a batch (the tuple of tensors that the agent's converter makes,
    overwritten after the update), and the schedule. Returns the scalar to minimise and a feedback
    of detached tensors. It must be pure: the result depends on the arguments (and on frozen tensors
    that the stage holds) alone, the same keys come back at every call, and no Python number that
    changes between updates enters the graph, because a compiled engine would compile anew for each
    value.
    """

    def __call__(
        self, parameters: Parameters, batch: Any, schedule: Schedule
    ) -> tuple[Tensor, Feedback]:
        """Loss (0-dim) and feedback of one batch."""
        ...


class ScheduleTensors(dict[str, Tensor]):
    """A schedule whose 0-dim float32 tensors stay the same objects while their values change.

    Example:
        >>> schedule = ScheduleTensors("learning_rate", "beta")
        >>> schedule.set(learning_rate=1e-4, beta=0.5)
        >>> float(schedule["beta"])
        0.5

    """

    def __init__(self, *names: str, device: torch.device = HOST) -> None:
        self._slots = {name: slot for slot, name in enumerate(names)}
        self._block = MirroredBlock(len(names), device)
        self._numbers = self._block.host.numpy()
        super().__init__(zip(names, self._block.there.unbind(), strict=True))

    def set(self, **values: float) -> None:
        """Set the values of some entries in place."""
        for name, value in values.items():
            self._numbers[self._slots[name]] = value
        self._block.send()


class PureModule:
    """A module as a pure function of its parameters, ``outputs = pure(parameters, *inputs)``.

    Where the parameters given are the module's own, it is called as it is, which saves the eager
    engine a tenth of an update; else `torch.func.functional_call` puts them in its place.
    """

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._own = dict(module.named_parameters())

    def __call__(self, parameters: Parameters, *inputs: Tensor) -> Any:
        """Outputs of the module with these parameters, named as the module names them."""
        if all(parameters[name] is tensor for name, tensor in self._own.items()):
            return self._module(*inputs)
        return functional_call(self._module, dict(parameters), inputs)
