"""Where the machine code of kernels is kept between processes.

Numba knows whether a kernel's own file has changed, but not whether a kernel that it calls from
another file has: the caller's machine code, with the old callee inside, would be used for ever.
So the folder's name is a digest of every source that a kernel may call.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numba

__all__ = ["code_folder", "keeping_code_in"]

_OWN = Path(__file__).parent
_settings: Any = numba.config


@cache
def code_folder(package: Path) -> Path:
    """The folder for the code of kernels in ``package``, by the sources of it and of storage."""
    digest = hashlib.sha256()
    for root in sorted({package, _OWN}):
        for source in sorted(root.rglob("*.py")):
            digest.update(str(source.relative_to(root)).encode())
            digest.update(source.read_bytes())
    base = Path(_settings.CACHE_DIR) if _settings.CACHE_DIR else package / "__pycache__"
    return base / f"kernels-{digest.hexdigest()[:16]}"


@contextlib.contextmanager
def keeping_code_in(function: Callable[..., Any]) -> Iterator[None]:
    """While it lasts, numba keeps the code of ``function`` in its `code_folder`.

    Numba reads the folder only when a function is decorated, so that no other package's kernels
    are concerned.
    """
    package = _package_folder(function)
    before = _settings.CACHE_DIR
    folder = code_folder(package)
    _settings.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        _settings.CACHE_DIR = before


def _package_folder(function: Callable[..., Any]) -> Path:
    """The folder of the top-level package that a function's file belongs to."""
    folder = Path(inspect.getfile(function)).resolve().parent
    while (folder.parent / "__init__.py").exists():
        folder = folder.parent
    return folder
