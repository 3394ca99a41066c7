"""An engine made of others that run in turn, each on what the one before has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from training.engines.engine import Engine
    from training.stage import Feedback, Schedule

__all__ = ["EngineSequence"]


class EngineSequence:
    """Runs engines in turn on the same batch and schedule (an `Engine`).

    They share an optimizer group by group. Their feedback is merged, with the sum of their losses
    and the norm of all their gradients together; a limit of the norm holds in each of them alone.
    All run by the same kind of engine: where one of them fell back to another kind at the first
    update, the others take that, too, from the next one on.

    Args:
        makers: Make the engines, each called with ``recorded`` alone, as `make_engine` takes it.
        recorded: Name of the engine that ran the updates before a checkpoint; None without any.
    """

    def __init__(self, makers: Sequence[Callable[..., Engine]], recorded: str | None) -> None:
        self._makers = list(makers)
        self._engines = [make(recorded=recorded) for make in makers]

    @property
    def name(self) -> str:
        """Name of the engines at work."""
        return self._engines[0].name

    def bind(self) -> None:
        """Take hold of the optimizer's present state tensors; create those that are absent."""
        for engine in self._engines:
            engine.bind()

    def update(self, batch: Any, schedule: Schedule) -> Feedback:
        """Run one update; feedback of all stages, with ``loss`` and ``gradient_norm`` (0-dim)."""
        parts = [engine.update(batch, schedule) for engine in self._engines]
        self._agree()
        merged = {name: tensor for part in parts for name, tensor in part.items()}
        merged["loss"] = torch.stack([part["loss"] for part in parts]).sum()
        norms = torch.stack([part["gradient_norm"] for part in parts])
        merged["gradient_norm"] = torch.linalg.vector_norm(norms)
        return merged

    def _agree(self) -> None:
        """Makes all engines eager once one of them had to be."""
        if any(engine.name != self.name for engine in self._engines):
            self._engines = [make(recorded="eager") for make in self._makers]
