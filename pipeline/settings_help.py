"""The help of settings, without the notation of Python's types."""

from __future__ import annotations

import argparse
import textwrap
import types
import typing
from pathlib import Path
from typing import Any, Final

from jsonargparse import DefaultHelpFormatter

__all__ = ["SettingsHelp", "default_text", "metavar", "positional_words"]

_WORDS: Final = {
    "CONFIG": "a YAML file of settings, as configs/hopper.yaml; later files win over earlier ones",
    "ENV": "where to act: a gymnasium id such as Hopper-v5, module:EnvId, or the class path of an "
    "environment's class or factory (the same as --environment.id)",
}
"""What the usage's positional words mean."""
_KINDS: Final[dict[Any, str]] = {int: "N", float: "X", str: "TEXT", list: "[…]", dict: "{…}"}


class SettingsHelp(DefaultHelpFormatter):
    """Paragraphs of the description stay apart; an option ends with its default."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = text.split("\n\n")
        return "\n\n".join(_filled(paragraph, width, indent) for paragraph in paragraphs)

    def _get_help_string(self, action: argparse.Action) -> str:
        text = (action.help or "").replace("``", "").rstrip()
        if not action.option_strings or action.default in (None, argparse.SUPPRESS):
            return text
        return f"{text} (default: {default_text(action.default)})"


def default_text(value: Any) -> str:
    """A default as one would write it on the command line."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def metavar(hint: Any) -> str:
    """What stands for a value of the type `hint`: N, X, TEXT, or the choices."""
    if isinstance(hint, types.UnionType):
        hint = next(each for each in typing.get_args(hint) if each is not type(None))
    if hint is bool:
        return "true|false"
    if typing.get_origin(hint) is typing.Literal:
        return "|".join(map(str, typing.get_args(hint)))
    return "FOLDER" if hint is Path else _KINDS.get(typing.get_origin(hint) or hint, "VALUE")


def positional_words(usage: str) -> str:
    """The meaning of each positional word of `usage`, a line each."""
    return "\n".join(f"  {word:<8}{text}" for word, text in _WORDS.items() if word in usage.split())


def _filled(paragraph: str, width: int, indent: str) -> str:
    if not paragraph.startswith("  "):
        return textwrap.fill(paragraph, width, initial_indent=indent, subsequent_indent=indent)
    lines = paragraph.splitlines()
    return "\n".join(textwrap.fill(line, width, subsequent_indent=" " * 10) for line in lines)
