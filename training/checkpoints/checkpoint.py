"""Finds the checkpoints of a run, and what each of them names of its store."""

from __future__ import annotations

from pathlib import Path

from storage.errors import CheckpointError
from training.checkpoints.checkpoint_file import CHECKPOINTS, read_checkpoint

__all__ = ["best_checkpoint", "last_checkpoint", "named_segments", "pinned_segments"]


def last_checkpoint(run: Path | str) -> Path:
    """The newest checkpoint of a run directory, from which it resumes; it may be damaged.

    Raises:
        CheckpointError: there is none.
    """
    return _existing(Path(run), ["last.ckpt", "previous.ckpt", "best.ckpt"])


def best_checkpoint(run: Path | str) -> Path:
    """The checkpoint with the best evaluation, or the newest where none was evaluated.

    Raises:
        CheckpointError: there is none.
    """
    return _existing(Path(run), ["best.ckpt", "last.ckpt", "previous.ckpt"])


def named_segments(path: Path | str) -> set[int]:
    """The segments of its store that a checkpoint cannot be resumed without.

    Those are the segments of the window's episodes, and the one that each lane was writing. Of
    others that the position names a rewind reads nothing but the log, where it is still there.
    Whoever takes segments out of a store (retention) keeps these.

    Raises:
        CheckpointError: the file is missing or damaged; it may name any segment then.
    """
    content = read_checkpoint(path)
    state = content.get("OnlineExperience") or content.get("OfflineExperience")
    if not state:
        return set()
    named = {int(row[0]) for row in state["view"]["episodes"]["data"].tolist()}
    lanes = state["position"]["lanes"] if "position" in state else []
    return named | {lane["segment"] for lane in lanes} - {None}


def pinned_segments(run: Path | str) -> set[int]:
    """What `named_segments` gives of all checkpoints of a run directory together.

    Raises:
        CheckpointError: one of them is damaged.
    """
    folder = Path(run) / "checkpoints"
    kept = [folder / name for name in CHECKPOINTS if (folder / name).is_file()]
    return set().union(*map(named_segments, kept))


def _existing(run: Path, names: list[str]) -> Path:
    folder = run / "checkpoints"
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise CheckpointError(
        f"{run} holds no checkpoint: {folder / 'last.ckpt'} does not exist. A run writes its first "
        "one when training starts; start it anew, or name another run"
    )
