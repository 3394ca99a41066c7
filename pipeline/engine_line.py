"""One line that says which engine runs a run's updates."""

from __future__ import annotations

from typing import Any

from lightning.pytorch.callbacks import Callback

__all__ = ["EngineLine"]


class EngineLine(Callback):
    """Prints the engine once, when training has begun and it is chosen."""

    def on_run_open(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Called after the agent has bound its engine."""
        print(f"updates by the {pl_module.engine_name} engine (agent.engine: auto)", flush=True)
