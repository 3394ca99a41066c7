"""Reads a checkpoint's file: no byte is believed before its checksum, and nothing in it is run."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import torch

from storage.errors import CheckpointError
from training.checkpoints.checkpoint_structure import check_structure

__all__ = ["AGENT_KEY", "CHECKPOINTS", "other_checkpoint", "read_checkpoint"]

AGENT_KEY = "sharpwave"
"""Where a checkpoint keeps the agent's settings, environment and counters."""
CHECKPOINTS = ("last.ckpt", "previous.ckpt", "best.ckpt")
"""The files of a run's folder of checkpoints."""
_GLOBAL = re.compile(r"GLOBAL (\S+)")
"""How torch names what a pickle would call."""
_DEEPEST = 64
_MOST_VALUES = 2 * 10**6
"""What no checkpoint reaches, but a file that is made to fill the memory does."""


def read_checkpoint(path: Path | str) -> dict[str, Any]:
    """The content of a checkpoint file: tensors, numbers and text.

    Every entry of the file is held against its CRC32 first. Then it is unpickled with
    ``weights_only``, which knows tensors and plain values and calls nothing else, and the types and
    ranges of what came out are checked.

    Raises:
        CheckpointError: the file is missing, damaged, or not written by Sharpwave; names the file,
            what is wrong in it, and a checkpoint beside it that is whole.
        PermissionError: it may not be read.
    """
    path = Path(path)
    try:
        return _content(path)
    except _UnreadableError as error:
        raise CheckpointError(f"{error}{error.joint}{_remedy(path)}") from error


def _content(path: Path) -> dict[str, Any]:
    """The content of a whole checkpoint; raises `_UnreadableError` for any other."""
    if path.is_dir():
        raise _UnreadableError(f"{path} is a folder, no checkpoint file", "; ")
    if not path.exists():
        raise _UnreadableError(f"there is no checkpoint {path}", "; ")
    if not path.is_file():  # reading a pipe or a device may never end
        raise _UnreadableError(f"{path} is a pipe, a socket or a device, no checkpoint file", "; ")
    damage = _damage(path)
    if damage is not None:
        raise _damaged(path, damage)
    try:
        content = _own(torch.load(path, map_location="cpu", weights_only=True, mmap=True))
    except PermissionError:
        raise
    except Exception as error:  # torch's unpickler runs into any error in bytes that are no pickle
        raise _damaged(path, _found(error)) from error
    if not isinstance(content, dict) or AGENT_KEY not in content:
        raise _UnreadableError(f"{path} holds no Sharpwave agent", "; ")
    problem = check_structure(content)
    if problem is not None:
        raise _damaged(path, problem)
    return content


class _UnreadableError(Exception):
    """No whole checkpoint; ``joint`` stands between the message and its remedy."""

    def __init__(self, message: str, joint: str) -> None:
        super().__init__(message)
        self.joint = joint


def other_checkpoint(path: Path) -> Path | None:
    """A checkpoint beside `path` that is whole, the newest first; None where none is."""
    for name in CHECKPOINTS:
        other = path.with_name(name)
        try:
            if other != path and other.is_file() and _content(other):
                return other
        except (_UnreadableError, OSError):
            continue
    return None


def _damaged(path: Path, found: str) -> _UnreadableError:
    return _UnreadableError(
        f"{path} cannot be read as a checkpoint ({found}); it is damaged or was not written by "
        "Sharpwave",
        ": ",
    )


def _found(error: Exception) -> str:
    """What torch's unpickler ran into; its advice to read the file by force is left out."""
    text = str(error)
    code = _GLOBAL.search(text)
    if code is not None:
        return f"it holds code, {code[1][:80]}, which is not run"
    if "weights_only" in text:
        return "it holds something else than tensors and plain values"
    return text.partition("\n")[0] or type(error).__name__


def _remedy(path: Path) -> str:
    other = other_checkpoint(path)
    return "use another one" if other is None else f"use {other}, which is whole"


def _damage(path: Path) -> str | None:
    """What is wrong with the file's bytes; None where every entry has its checksum.

    Entries of a checkpoint are not compressed, and do not overlap: together they are smaller than
    the file. Anything else was made to fill the memory.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
                return "its entries are compressed"
            if sum(entry.file_size for entry in entries) > path.stat().st_size:
                return "its entries are larger than the file"
            broken = archive.testzip()
    except PermissionError:
        raise
    except Exception as error:  # zipfile's parser, too, runs into any error in arbitrary bytes
        return f"no whole zip file, {path.stat().st_size:,} bytes: {type(error).__name__} {error}"
    return None if broken is None else f"its entry {broken} does not have its checksum"


def _own(content: Any) -> Any:
    """The content with its tensors copied into memory of their own."""
    return _Owner().own(content, 0)


class _Owner:
    """Walks what came out of a file, and takes only what a checkpoint is made of."""

    def __init__(self) -> None:
        self._values = 0

    def own(self, value: Any, depth: int) -> Any:
        self._values += 1
        if depth > _DEEPEST or self._values > _MOST_VALUES:
            raise CheckpointError("it is nested beyond measure")
        if isinstance(value, torch.Tensor):
            return _own_tensor(value)
        if isinstance(value, dict):
            for key in value:
                value[key] = self.own(value[key], depth + 1)
        elif isinstance(value, list):
            value[:] = [self.own(each, depth + 1) for each in value]
        elif isinstance(value, tuple):
            return tuple(self.own(each, depth + 1) for each in value)
        elif not (value is None or isinstance(value, bool | int | float | str)):
            raise CheckpointError(f"it holds a {type(value).__name__}")
        return value


def _own_tensor(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of a plain tensor; one may show more elements than its memory holds."""
    plain = type(tensor) is torch.Tensor and tensor.layout is torch.strided
    if not plain or tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
        raise CheckpointError(f"it holds a {type(tensor).__name__} that is no plain tensor")
    return tensor.detach().clone()
