"""Agents that learn from a store: networks, rules, engine, and the online loop on Lightning.

Importing this package is cheap; torch and Lightning are loaded by the names that need them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from training.torch_cache import ensure_cache_folder

if TYPE_CHECKING:
    from training.assembly import build, trainer
    from training.config import RunConfig
    from training.config_file import load_config, save_config
    from training.loading import load

__all__ = ["RunConfig", "build", "load", "load_config", "save_config", "trainer"]

_HOMES = {
    "RunConfig": "training.config",
    "build": "training.assembly",
    "load": "training.loading",
    "load_config": "training.config_file",
    "save_config": "training.config_file",
    "trainer": "training.assembly",
}


ensure_cache_folder()


def __getattr__(name: str) -> Any:
    """Loads a public name from its module on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'training' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
