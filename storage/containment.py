"""Nothing outside a store is read or written, whatever lies in its folder.

A store may come from anywhere. Below its root no symbolic link is followed, and where a file is
expected nothing else is opened: a named pipe would block for ever, a device may do anything.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from storage.errors import CorruptStoreError
from storage.layout import StorePaths

__all__ = [
    "kind_of",
    "open_regular",
    "read_regular",
    "require_folders",
    "require_inside",
    "require_regular",
]

_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISCHR, "a device"),
)


def kind_of(mode: int) -> str | None:
    """What a file's mode says that it is, in words; None for a regular file."""
    return next((words for test, words in _KINDS if test(mode)), None)


def require_inside(root: Path, path: Path) -> None:
    """Raise CorruptStoreError when a part of ``path`` below ``root`` is a symbolic link.

    ``root`` itself may be one, or lie behind one. Parts that do not exist are no links.
    """
    try:
        parts = path.relative_to(root).parts
    except ValueError:
        parts = ("..",)
    if ".." in parts:
        raise CorruptStoreError(f"{path} does not lie in {root}; nothing outside it is touched")
    place = os.fspath(root)
    for part in parts:
        place = f"{place}/{part}"
        try:
            mode = os.lstat(place).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return
        if stat.S_ISLNK(mode):
            raise _link(Path(place))


def require_regular(path: Path) -> os.stat_result | None:
    """The file's status, or None when nothing is there; CorruptStoreError when it is no file."""
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    kind = kind_of(status.st_mode)
    if kind == "a symbolic link":
        raise _link(path)
    if kind is not None:
        raise CorruptStoreError(
            f"{path} is {kind} where a file belongs; it was not opened. Move it out of the store, "
            "and restore the file from a copy if there was one"
        )
    return status


def open_regular(path: str | os.PathLike[str], flags: int) -> int:
    """An ``opener`` for ``open`` and ``FileIO`` that opens, or makes, nothing but a regular file.

    Never blocks. Raises CorruptStoreError for a link, a pipe, a device, a socket or a folder.
    """
    require_regular(Path(path))
    # what came after the look: a link fails here, a pipe does not block and is seen below
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise CorruptStoreError(f"{path} is no regular file; it was not read. Move it out")
    return descriptor


def read_regular(path: Path) -> bytes:
    """The content of a regular file; CorruptStoreError for anything else."""
    with open(path, "rb", opener=open_regular) as file:
        return file.read()


def require_folders(paths: StorePaths) -> None:
    """Raise CorruptStoreError when a folder of the store is a link or no folder at all."""
    for folder in paths.folders():
        try:
            mode = os.lstat(folder).st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue  # an empty one that a copy lost
        if stat.S_ISLNK(mode):
            raise _link(folder)
        if not stat.S_ISDIR(mode):
            raise CorruptStoreError(
                f"{folder} is {kind_of(mode) or 'a file'} where a folder belongs; move it out of "
                "the store, and restore the folder from a copy if there was one"
            )


def _link(path: Path) -> CorruptStoreError:
    return CorruptStoreError(
        f"{path} is a symbolic link, and nothing is read or written through links in a store: put "
        "what it points to in its place (the store as a whole may be a link), or remove it"
    )
