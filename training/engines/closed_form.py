"""Stages whose gradient is known in closed form: what the fused engine runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from storage.errors import ConfigError

if TYPE_CHECKING:
    from torch import Tensor

    from storage.kernel import Floats32
    from training.stage import Feedback, Parameters, Schedule

__all__ = ["ClosedForm", "check_rows"]


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


def check_rows(batch: Any, size: int, action: int) -> None:
    """Refuses a batch (a named tuple of tensors) whose fields are not of so many steps.

    Observations are checked by the passes that take them.

    Raises:
        ConfigError: naming the field.

    """
    wide = ("raw_action", "behaviour_mean", "behaviour_stdev")
    for name, tensor in batch._asdict().items():
        wanted = (size, action) if name in wide else (size,)
        observed = name in ("observation", "next_observation")
        if not size or not (observed or tensor.shape == wanted):
            raise ConfigError(
                f"the batch's {name} has shape {tuple(tensor.shape)}: an update takes at least "
                f"one step and one number, or {action} of an action, for each of them"
            )
