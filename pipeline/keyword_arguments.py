"""Keyword arguments on the command line."""

from __future__ import annotations

import argparse
from typing import Any

import yaml

from training.settings_yaml import yaml_value

__all__ = ["keywords"]


def keywords(text: str) -> dict[str, Any]:
    """Keyword arguments as YAML, such as "{noop_max: 30}", for `type=`."""
    try:
        found = yaml_value(text)
    except yaml.YAMLError as error:
        raise argparse.ArgumentTypeError(f"{text!r} cannot be read: {error}") from None
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise argparse.ArgumentTypeError(f"{text!r} are no keyword arguments, as {{noop_max: 30}}")
    return found
