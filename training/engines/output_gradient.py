"""Stages whose gradient at the network's outputs is known in closed form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from storage.errors import ConfigError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from storage.kernel import Floats32
    from training.network import Mlp
    from training.stage import Feedback, Parameters, Schedule

__all__ = ["OutputGradient", "check_rows"]


class OutputGradient(ABC):
    """A stage with a closed form, for the fused engine.

    Contract. ``body`` and ``head`` are the network; ``parameters`` all of the stage's parameters,
    theirs included. `fill` gets the outputs of a batch and writes the loss's gradient with respect
    to them, and with respect to every parameter that is not the network's, into what it is given;
    it returns the loss and the feedback. Numbers must be those of the stage that autograd would
    differentiate: the engines' agreement is tested. A stage with networks besides (a target) runs
    them in `fill`, takes hold of their memory in `bind`, and changes them in `stepped` alone.
    """

    body: Mlp
    head: nn.Linear
    parameters: Parameters

    def bind(self) -> None:  # noqa: B027
        """The memory of networks may have been replaced; called before the first update."""

    @abstractmethod
    def fill(
        self,
        outputs: Floats32,
        gradient: Floats32,
        others: dict[Tensor, Floats32],
        batch: Any,
        schedule: Schedule,
    ) -> tuple[float, Feedback]:
        """Write both gradients; gives loss and feedback.

        Outputs and their gradient are (B, K), then columns of padding that must stay as they are;
        ``others`` are padded likewise, a vector's gradient in the first row.
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
