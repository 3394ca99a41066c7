"""What gymnasium and environments warn of while an environment is made: each once, in one line."""

from __future__ import annotations

import re
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["EnvironmentWarning", "plain_warnings"]

_COLOURED = re.compile(r"\x1b\[\d+m(?:WARN|ERROR): (?P<text>.*)\x1b\[0m", re.DOTALL)
"""How gymnasium's logger writes."""
_SHOWN: set[str] = set()
"""What this process has warned of already."""


class EnvironmentWarning(UserWarning):
    """Something that gymnasium says of an environment, such as that there is a newer version."""


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Shows what is warned of inside once a process, gymnasium's words without their colours.

    Every lane and every evaluation makes its environment anew, and would warn again.
    """
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            yield
    finally:  # also where it cannot be made: they may say why
        for each in caught:
            _show_plainly(each)


def _show_plainly(warning: warnings.WarningMessage) -> None:
    text = str(warning.message)
    coloured = _COLOURED.fullmatch(text)
    if coloured is None:
        _show(text, warning.category, warning.filename, warning.lineno)
    else:
        _show(" ".join(coloured["text"].split()), EnvironmentWarning, "gymnasium", 0)


def _show(text: str, category: type[Warning], file: str, line: int) -> None:
    if text not in _SHOWN:
        _SHOWN.add(text)
        warnings.warn_explicit(text, category, file, line)
