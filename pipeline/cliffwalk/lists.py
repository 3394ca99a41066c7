"""Options of `sharpwave cliffwalk` that take several values."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Final

from pipeline.nearest import nearest

__all__ = ["LARGEST", "SMALLEST", "names", "numbers", "sizes"]

SMALLEST: Final = 2
LARGEST: Final = 20
"""States that a study may ask for."""


def sizes(text: str) -> tuple[int, ...]:
    """Numbers of states: "2-16", "8,12,16", or both ways mixed; sorted, each once."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        try:
            low, high = int(first), int(last or first)
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"{part!r} is no number of states; write 8,12,16 or 2-16"
            ) from None
        for end in (low, high):
            if not SMALLEST <= end <= LARGEST:
                raise argparse.ArgumentTypeError(
                    f"{end} states are not to be had, only {SMALLEST} to {LARGEST}"
                )
        if low > high:
            raise argparse.ArgumentTypeError(f"{part!r} counts down; write {high}-{low}")
        found.update(range(low, high + 1))
    return tuple(sorted(found))


def names(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """A parser of names among `known`, separated by commas; each once, as they come."""

    def parse(text: str) -> tuple[str, ...]:
        found = tuple(dict.fromkeys(text.split(",")))
        for name in found:
            if name not in known:
                raise argparse.ArgumentTypeError(
                    f"there is no {name!r}{nearest(name, known)}; choose from {', '.join(known)}"
                )
        return found

    return parse


def numbers(
    low: float, high: float, *, open_ends: bool = False
) -> Callable[..., tuple[float, ...]]:
    """A parser of numbers from `low` to `high`, separated by commas; each once, as they come."""

    def parse(text: str) -> tuple[float, ...]:
        return tuple(dict.fromkeys(_number(part) for part in text.split(",")))

    def _number(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
        inside = low < number < high if open_ends else low <= number <= high
        if not inside:
            between = "between" if open_ends else "from"
            and_ = "and" if open_ends else "to"
            raise argparse.ArgumentTypeError(
                f"{text} is out of range; give numbers {between} {low:g} {and_} {high:g}"
            )
        return number

    return parse
