"""Tables that read well on a terminal and in a document alike."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["text_table"]


def text_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], *, numbers_from: int, narrowest: int = 1
) -> str:
    """A Markdown table whose columns from the `numbers_from`-th on are aligned to the right."""
    cells = [heads, *rows]
    widths = [max(narrowest, *(len(line[i]) for line in cells)) for i in range(len(heads))]
    rules = [
        f"{'-' * (width - 1)}{':' if i >= numbers_from else '-'}" for i, width in enumerate(widths)
    ]
    return "\n".join(_line(line, widths, numbers_from) for line in (heads, rules, *rows))


def _line(cells: Sequence[str], widths: Sequence[int], numbers_from: int) -> str:
    padded = (
        cell.rjust(width) if i >= numbers_from else cell.ljust(width)
        for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return f"| {' | '.join(padded)} |"
