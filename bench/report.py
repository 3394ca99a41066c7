"""Prints the newest measurement of every figure as a table: `python -m bench.report`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["RESULTS", "markdown", "newest"]

RESULTS = Path(__file__).with_name("results.jsonl")


def newest(path: Path = RESULTS) -> list[dict[str, Any]]:
    """The last line of each figure's name, in the order in which names first appeared."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    return list({line["name"]: line for line in lines}.values())


def markdown(lines: list[dict[str, Any]]) -> str:
    """A Markdown table; the ratio says how many times the limit's cost a figure is."""
    rows = [
        "| figure | measured | limit | | ratio |",
        "|---|---|---|---|---|",
    ]
    for line in lines:
        unit = line["unit"]
        measured, limit = f"{line['value']:,.4g} {unit}", f"{line['limit']:,.4g} {unit}"
        ratio = f"{line['ratio']:.2f}"
        rows.append(f"| {line['name']} | {measured} | {limit} | {line['limit_name']} | {ratio} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(markdown(newest()))
