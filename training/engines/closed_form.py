"""Stages whose gradient is known in closed form: what the fused engine runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

    from storage.kernel import Floats32
    from training.stage import Feedback, Parameters, Schedule

__all__ = ["ClosedForm"]


class ClosedForm(ABC):
    """A stage with a closed form, for the fused engine.

    Contract. ``parameters`` are all of the stage's. `fill` writes the gradient of the loss of a
    batch with respect to each of them, and returns the loss and the feedback. Numbers must be
    those of the stage that autograd would differentiate: the engines' agreement is tested. It
    takes hold of the networks' memory in `bind`, and changes networks that follow in `stepped`
    alone.
    """

    parameters: Parameters

    @abstractmethod
    def bind(self) -> None:
        """The memory of networks may have been replaced; called before the first update."""

    @abstractmethod
    def fill(
        self, gradients: dict[Tensor, Floats32], batch: Any, schedule: Schedule
    ) -> tuple[float, Feedback]:
        """Write all gradients; gives loss and feedback.

        Gradients are `padded`, by parameter, a vector's in the first row; padding stays as it is.
        """

    def stepped(self) -> None:  # noqa: B027
        """The optimizer has changed the parameters: the end of an update."""
