"""Objects by class path, `package.module.name` or `package.module:name`."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["is_class_path", "load_object"]


def load_object(class_path: str) -> Any:
    """The object at a class path, whose module is imported.

    Raises:
        ModuleNotFoundError, AttributeError: when the module or the name does not exist.
    """
    module_name, _, name = class_path.replace(":", ".").rpartition(".")
    if not module_name:
        raise ModuleNotFoundError(f"{class_path!r} is no class path")
    return getattr(importlib.import_module(module_name), name)


def is_class_path(name: str) -> bool:
    """Whether a name is a class path, and no bare word."""
    return any(mark in name for mark in ".:")
