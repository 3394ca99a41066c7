"""Stages of one network, whose gradient at its outputs is known in closed form."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from training.engines.closed_form import ClosedForm
from training.engines.mlp_pass import MlpPass

if TYPE_CHECKING:
    from torch import Tensor, nn

    from storage.kernel import Floats32
    from training.network import Mlp
    from training.stage import Feedback, Parameters, Schedule

__all__ = ["OutputGradient"]


class OutputGradient(ClosedForm):
    """A closed form at the outputs of one network, of hidden layers and a linear head.

    Contract. ``parameters`` may hold others than the network's. `fill_outputs` gets the outputs
    of a batch and writes the loss's gradient with respect to them, and with respect to every
    parameter that is not the network's, into what it is given. Who overrides `bind` calls it.
    """

    def __init__(self, body: Mlp, head: nn.Linear, parameters: Parameters) -> None:
        self.parameters = parameters
        self._body = body
        self._head = head
        self._passes: dict[int, MlpPass] = {}

    def bind(self) -> None:
        """Take hold of the network's present weights."""
        self._passes.clear()

    def fill(
        self, gradients: dict[Tensor, Floats32], batch: Any, schedule: Schedule
    ) -> tuple[float, Feedback]:
        """Run the network forward and backward, around `fill_outputs`."""
        passes = self._pass(len(batch.observation), gradients)
        passes.forward(batch.observation.numpy())
        found = self.fill_outputs(
            passes.outputs, passes.output_gradient, gradients, batch, schedule
        )
        passes.backward()
        return found

    @abstractmethod
    def fill_outputs(
        self,
        outputs: Floats32,
        gradient: Floats32,
        others: dict[Tensor, Floats32],
        batch: Any,
        schedule: Schedule,
    ) -> tuple[float, Feedback]:
        """Write both gradients; gives loss and feedback.

        Outputs and their gradient are (B, K), then columns of padding that must stay as they are.
        """

    def _pass(self, size: int, gradients: dict[Tensor, Floats32]) -> MlpPass:
        if size not in self._passes:
            self._passes[size] = MlpPass(self._body, self._head, size, gradients)
        return self._passes[size]
