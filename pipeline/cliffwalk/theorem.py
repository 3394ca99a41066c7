"""`sharpwave cliffwalk --theorem`: closed forms beside simulations of the idealised processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pipeline.cliffwalk.folder import CliffwalkFolder, write_table
from pipeline.cliffwalk.plot import mark_states, title_figure
from pipeline.cliffwalk.table import shown_sizes, sizes_text, table_text
from pipeline.curve_plot import save_figure
from pipeline.quoting import quote
from storage.kernel import Integers
from storage.replay.schemes.priority_settings import SequenceSettings
from training.cliffwalk import theorem
from training.cliffwalk.idealised import simulate_per, simulate_pser, simulate_uniform

__all__ = ["Comparison", "compare_theorem", "processes"]

_SCHEMA: Final = pa.schema(
    [
        ("n", pa.int64()),
        ("process", pa.string()),
        ("decay", pa.float64()),
        ("window", pa.int64()),
        ("expected", pa.float64()),
        ("mean", pa.float64()),
        ("standard_error", pa.float64()),
        ("within_3", pa.bool_()),
        ("repeats", pa.int64()),
    ]
)
_WITHIN: Final = 3.0
"""Standard errors that a simulation may be off."""
_COLOURS: Final = (
    *("#6b7280", "#c8641e", "#f0a868"),
    *("#2563a8", "#2f855a", "#7c3aed", "#be185d", "#0ea5e9"),
)
"""Of uniform replay and both PERs, then of each decay."""


@dataclass(frozen=True, slots=True)
class Process:
    """An idealised process: its closed form, and its simulation of (n, repeats)."""

    name: str
    expected: Callable[[int], float]
    simulate: Callable[[int, int], Integers]
    decay: float | None = None
    window: int | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One process at one n."""

    n: int
    process: Process
    expected: float
    mean: float
    standard_error: float
    repeats: int

    @property
    def within(self) -> bool:
        """Whether the mean is at most 3 standard errors off, and exact where there is none."""
        return abs(self.mean - self.expected) <= _WITHIN * self.standard_error + 1e-9

    def row(self) -> dict[str, Any]:
        """One row of theorem.parquet."""
        process = self.process
        return {
            "n": self.n,
            "process": process.name,
            "decay": process.decay,
            "window": process.window,
            "expected": self.expected,
            "mean": self.mean,
            "standard_error": self.standard_error,
            "within_3": self.within,
            "repeats": self.repeats,
        }


def processes(decays: Sequence[float], seed: int = 0) -> Iterator[Process]:
    """Uniform replay, PER, PER with the error before the update, and PSER for each decay.

    PSER comes without a window, as in the theorem, and with that of eq. 8.
    """
    yield Process("uniform", theorem.expected_uniform, partial(simulate_uniform, seed=seed))
    yield Process("PER", theorem.expected_per, partial(simulate_per, seed=seed))
    yield Process(
        "PER, error before the update",
        theorem.expected_per_error_before,
        partial(simulate_per, seed=seed, error_before=True),
    )
    for decay in decays:
        yield _pser(decay, None, seed)
        reach = SequenceSettings(decay=decay).reach
        if reach:  # a decay below 0.01 reaches nobody by eq. 8
            yield _pser(decay, reach, seed)


def compare_theorem(
    path: Path, sizes: Sequence[int], decays: Sequence[float], repeats: int
) -> None:
    """Simulates, prints the table, and writes it and its picture into the folder at `path`.

    Raises:
        ConfigError: something else is at `path`, or another process plays there.
    """
    folder = CliffwalkFolder.at(path)
    with folder.held():
        found = [_compare(process, n, repeats) for process in processes(decays) for n in sizes]
        write_table(pa.Table.from_pylist([each.row() for each in found], _SCHEMA), path / "theorem")
        picture = _save_picture(found, path / "theorem.png")
    print(_table(found))
    shown = sizes_text(each.n for each in found)
    if shown:
        print(f"\n{shown}, and means that are off; {quote(path / 'theorem.csv')} has them all.")
    good = sum(each.within for each in found)
    print(
        f"\n{good} of {len(found)} means of {repeats:,} simulations are within 3 standard errors"
        "\n(about 1 of 370 is not, by chance alone)."
        "\nPER that sets priorities from the error before the update, as every real one does, draws"
        "\neach learnt transition but the last once more: its expectation is PER's + (n - 1)."
        f"\n\ntables: {quote(path / 'theorem.parquet')} {quote(path / 'theorem.csv')}"
        f"\npicture: {quote(picture)}"
    )


def _pser(decay: float, window: int | None, seed: int) -> Process:
    return Process(
        f"PSER, ρ {decay:g}" + (f", W {window}" if window is not None else ""),
        partial(theorem.expected_pser, decay=decay, window=window),
        lambda n, repeats: simulate_pser(n, decay, repeats, seed, window=window),
        decay,
        window,
    )


def _compare(process: Process, n: int, repeats: int) -> Comparison:
    draws = process.simulate(n, repeats)
    deviation = float(draws.std(ddof=1)) if repeats > 1 else 0.0
    return Comparison(
        n=n,
        process=process,
        expected=process.expected(n),
        mean=float(draws.mean()),
        standard_error=deviation / float(np.sqrt(repeats)),
        repeats=repeats,
    )


def _table(found: Sequence[Comparison]) -> str:
    """Some numbers of states, and whatever is further off than it may be."""
    shown = shown_sizes([each.n for each in found])
    found = [each for each in found if each.n in shown or not each.within]
    heads = ["process", "n", "expected draws", "simulated", "± error", "errors off"]
    return table_text(heads, [_cells(each) for each in found])


def _cells(each: Comparison) -> list[str]:
    off = (each.mean - each.expected) / each.standard_error if each.standard_error else 0.0
    return [
        each.process.name,
        str(each.n),
        f"{each.expected:,.6f}",
        f"{each.mean:,.3f}",
        f"{each.standard_error:,.3f}",
        f"{off:+.2f}" + ("" if each.within else " !"),
    ]


def _save_picture(found: Sequence[Comparison], path: Path) -> Path:
    """Closed forms as lines, simulations as dots; of PSER those without a window."""
    groups: dict[str, list[Comparison]] = {}
    for each in found:
        if each.process.window is None:
            groups.setdefault(each.process.name, []).append(each)
    with save_figure(path, (8.0, 6.0), elsewhere="--folder") as figure:
        axes = figure.subplots()
        for number, (name, members) in enumerate(groups.items()):
            pen: dict[str, Any] = {"color": _COLOURS[number % len(_COLOURS)]}
            sizes = [each.n for each in members]
            expected = [each.expected for each in members]
            stroke = "dotted" if "before" in name else "solid"
            axes.plot(sizes, expected, label=name, linestyle=stroke, linewidth=1.6, **pen)
            axes.plot(sizes, [each.mean for each in members], "o", markersize=3.5, **pen)
        axes.set_yscale("log")
        mark_states(axes, [each.n for each in found])
        axes.set_ylabel("expected draws until all states are learnt")
        title_figure(figure, "Blind Cliffwalk, Theorem 1: closed forms (lines), simulations (dots)")
        axes.legend(loc="upper left")
    return path
