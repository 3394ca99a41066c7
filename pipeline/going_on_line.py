"""One line that says where a resumed run goes on."""

from __future__ import annotations

from typing import Any

from lightning.pytorch.callbacks import Callback

__all__ = ["GoingOnLine"]


class GoingOnLine(Callback):
    """Prints from which step a run goes on, and how much of it was set aside."""

    def on_run_open(self, trainer: Any, agent: Any) -> None:
        """Called once the store is where the checkpoint had left it."""
        unit = "step" if agent.acting else "update"
        later = getattr(trainer.datamodule, "steps_set_aside", 0)
        told = "" if not later else f"; {later:,} later steps are set aside in store/orphans"
        print(f"going on from {unit} {agent.steps:,}{told}", flush=True)
