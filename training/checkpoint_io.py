"""How checkpoint files reach the disk."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from lightning.fabric.plugins.io import TorchCheckpointIO

from storage.atomic import write_atomic

if TYPE_CHECKING:
    from lightning.fabric.utilities.types import _PATH

__all__ = ["AtomicCheckpointIO"]


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes beside the file and renames into place, so that a killed save leaves the old one.

    Lightning's own writer goes through the system's temporary directory, which is often on another
    file system; from there nothing can be renamed into place.
    """

    def save_checkpoint(
        self,
        checkpoint: dict[str, Any],
        path: _PATH,
        storage_options: Any | None = None,  # noqa: ARG002
    ) -> None:
        """Saves ``checkpoint`` at ``path``.

        Raises:
            DiskFullError: there is no room; the file at ``path`` is as it was.
        """
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        content = io.BytesIO()
        torch.save(checkpoint, content)
        write_atomic(target, content.getvalue(), target.parent)
