"""The fallback engine: compiled updates, or eager ones where they cannot be compiled."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from training.engines.compile_report import CompileError

if TYPE_CHECKING:
    from training.engines.engine import Engine
    from training.stage import Feedback, Schedule

__all__ = ["FallbackEngine", "NotCompiledWarning"]


class NotCompiledWarning(UserWarning):
    """Updates that run eagerly because they could not be compiled."""


class FallbackEngine:
    """Runs a compiled engine, or for good another one where the first update fails (an `Engine`).

    Its name is that of the engine at work: final once an update has run.
    """

    def __init__(self, compiled: Engine, make_other: Callable[[], Engine]) -> None:
        self._engine = compiled
        self._make_other = make_other

    @property
    def name(self) -> str:
        """Name of the engine at work."""
        return self._engine.name

    def bind(self) -> None:
        """Take hold of the optimizer's present state tensors; create those that are absent."""
        self._engine.bind()

    def update(self, batch: Any, schedule: Schedule) -> Feedback:
        """Run one update; feedback of the stage, with ``loss`` and ``gradient_norm`` (0-dim)."""
        try:
            return self._engine.update(batch, schedule)
        except CompileError as error:
            self._engine = self._make_other()
            warnings.warn(
                f"updates cannot be compiled here: {error.reason}; the {self.name} engine runs "
                "them, more slowly",
                NotCompiledWarning,
                stacklevel=2,
            )
        return self._engine.update(batch, schedule)
