"""Argument parsers whose errors are `ConfigError`s with the nearest option's name."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from pipeline.nearest import nearest
from storage.errors import ConfigError

__all__ = ["VerbParser", "check_options", "natural", "positive", "share"]


class VerbParser(argparse.ArgumentParser):
    """`argparse` for the light verbs: no abbreviations, no exit in the middle of a program."""

    def __init__(self, verb: str, description: str) -> None:
        super().__init__(prog=f"sharpwave {verb}", description=description, allow_abbrev=False)

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """The settings; raises `ConfigError` for what the verb does not know."""
        options = [name for action in self._actions for name in action.option_strings]
        check_options(self.prog, arguments, options)
        names = [word.split("=", 1)[0] for word in arguments if word.startswith("--")]
        twice = [name for name in names if name != "--" and names.count(name) > 1]
        if twice:
            raise ConfigError(f"{self.prog}: {twice[0]} is given twice; leave one out")
        return self.parse_args(list(arguments))

    def error(self, message: str) -> NoReturn:
        """Raises instead of exiting, so that the dispatcher words every error alike."""
        raise ConfigError(f"{self.prog}: {message}; see `{self.prog} --help`")


def check_options(prog: str, arguments: Sequence[str], options: Sequence[str]) -> None:
    """Raises `ConfigError` at the first `--option` that is not among `options`."""
    for word in arguments:
        if word == "--":
            return
        name = word.split("=", 1)[0]
        if name.startswith("--") and name not in options:
            hint = nearest(name, options)
            raise ConfigError(f"{prog}: there is no option {name}{hint}; see `{prog} --help`")


def positive(text: str) -> int:
    """A whole number of at least 1, for `type=`."""
    return _at_least(text, 1)


def natural(text: str) -> int:
    """A whole number of at least 0, for `type=`."""
    return _at_least(text, 0)


def share(text: str) -> float:
    """A number from 0 to 1, for `type=`."""
    try:
        number = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
    if not 0.0 <= number <= 1.0:
        raise argparse.ArgumentTypeError(f"{number:g} is not between 0 and 1")
    return number


def _at_least(text: str, least: int) -> int:
    try:
        number = int(text) if text.strip("+-_0123456789") == "" else _integral(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None
    if number < least:
        raise argparse.ArgumentTypeError(f"{number} is too small, it must be at least {least}")
    return number


def _integral(text: str) -> int:
    """1e4 and 10.0 are whole numbers, too; raises ValueError for what is none."""
    number = float(text)
    if not number.is_integer():
        raise ValueError(text)
    return int(number)
