"""Markdown tables of peers side by side, out of the lines that are their cells."""

from __future__ import annotations

from collections.abc import Sequence

from bench.results import Line

__all__ = ["columns_of", "names_of", "number", "tables_of", "time_of"]


def tables_of(lines: Sequence[Line]) -> list[str]:
    """One Markdown table for each that the lines name."""
    names = dict.fromkeys(line["table"] for line in lines if "table" in line)
    return [_table([line for line in lines if line.get("table") == name], name) for name in names]


def names_of(cells: Sequence[Line]) -> list[str]:
    """The rows of a table but ours, in order."""
    return list(dict.fromkeys(cell["limit_name"] for cell in cells))


def columns_of(cells: Sequence[Line]) -> list[str]:
    """What was measured, in order."""
    return list(dict.fromkeys(cell["column"] for cell in cells))


def time_of(cells: Sequence[Line], name: str, column: str) -> tuple[float, float] | None:
    """A peer's time and how many times ours that is; None where it has no such cell."""
    for cell in cells:
        if (cell["limit_name"], cell["column"]) == (name, column):
            return cell["limit"], 1 / cell["ratio"]
    return None


def number(value: float, digits: int) -> str:
    """So many digits that mean something; of large numbers all before the point."""
    return f"{value:,.0f}" if value >= 10 ** (digits - 1) else f"{value:.{digits}g}"


def _table(cells: Sequence[Line], name: str) -> str:
    columns = columns_of(cells)
    ours = {cell["column"]: cell["value"] for cell in cells}
    rows = [
        f"{name}, {cells[0]['unit']}; in brackets: how many times ours",
        "",
        f"| | {' | '.join(columns)} |",
        f"|---|{'---|' * len(columns)}",
        f"| ours | {' | '.join(number(ours[column], 3) for column in columns)} |",
    ]
    for peer in names_of(cells):
        shown = [time_of(cells, peer, column) for column in columns]
        rows.append(f"| {peer} | {' | '.join(map(_text, shown))} |")
    rest = " |" * (len(columns) - 1)
    left_out: dict[str, str] = cells[0]["details"].get("left_out", {})
    rows += [f"| {peer} | left out: {why} |{rest}" for peer, why in left_out.items()]
    return "\n".join(rows)


def _text(time: tuple[float, float] | None) -> str:
    return "–" if time is None else f"{number(time[0], 3)} ({number(time[1], 2)})"
