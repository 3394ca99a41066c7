"""Binned returns as a Parquet table and as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.protocol.bins import Bin
from pipeline.protocol.trained_run import Method
from pipeline.text_table import text_table

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["bin_rows", "bin_schema", "bins_text"]

_HEADS = ("bin", "steps behind the warm-up", "steps with it", "mean", "20 %", "80 %", "episodes")


def bin_schema() -> pa.Schema:
    """Columns of the Parquet table: a row a method and bin."""
    import pyarrow as pa

    text, whole, number = pa.string(), pa.int64(), pa.float64()
    return pa.schema(
        [
            ("environment", text),
            ("method", text),
            ("bin", whole),
            ("first_step", whole),
            ("last_step", whole),
            ("first_step_with_warmup", whole),
            ("last_step_with_warmup", whole),
            ("mean_return", number),
            ("return_20", number),
            ("return_80", number),
            ("episodes", whole),
            ("runs", whole),
            ("complete", pa.bool_()),
            ("seeds", pa.list_(whole)),
            ("run_means", pa.list_(number)),
        ]
    )


def bin_rows(found: Iterable[tuple[Method, Sequence[Bin]]]) -> list[dict[str, Any]]:
    """Rows of `bin_schema`; what is not known is None, of the warm-up the steps behind it, too."""
    return [_row(method, each) for method, bins in found for each in bins]


def bins_text(method: Method, bins: Sequence[Bin]) -> str:
    """A table of one method's bins with a title."""
    count = len(method.runs)
    seeds = ", ".join(map(str, method.seeds))
    title = f"{method.environment}, {method.name}: {count} seed{'s' * (count > 1)} ({seeds})"
    several = any(each.runs != count for each in bins)
    heads = [*_HEADS, *["runs"] * several]
    rows = [[*_cells(each), *[str(each.runs)] * several] for each in bins]
    return f"{title}\n\n{text_table(heads, rows, numbers_from=1)}"


def _cells(each: Bin) -> list[str]:
    behind = f"{each.first:,} to {each.last:,}" if each.number else "–"
    name = str(each.number) if each.number else "warm-up"
    return [
        name if each.complete else f"{name} (partial)",
        behind,
        f"{each.first_with_warmup:,} to {each.last_with_warmup:,}",
        *(_number(value) for value in (each.mean, *each.band)),
        f"{each.episodes:,}",
    ]


def _row(method: Method, each: Bin) -> dict[str, Any]:
    low, high = each.band
    return {
        "environment": method.environment,
        "method": method.name,
        "bin": each.number,
        "first_step": each.first if each.number else None,
        "last_step": each.last if each.number else None,
        "first_step_with_warmup": each.first_with_warmup,
        "last_step_with_warmup": each.last_with_warmup,
        "mean_return": _known(each.mean),
        "return_20": _known(low),
        "return_80": _known(high),
        "episodes": each.episodes,
        "runs": each.runs,
        "complete": each.complete,
        "seeds": method.seeds,
        "run_means": [_known(mean) for mean in each.means],
    }


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:,.1f}"
