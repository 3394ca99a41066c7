"""Pictures of a run: all ratios, and one a cost curve and a table of peers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.bars import draw_bars
from bench.results import Line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

__all__ = ["draw"]

_MEASURED, _TARGET, _GREY = "#1f77b4", "#d62728", "#777777"


def draw(lines: Sequence[Line], folder: Path) -> list[Path]:
    """Draws what the lines have into PNG files; their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    plain = [line for line in lines if "curve" not in line and "table" not in line]
    if plain:
        paths.append(_save(_ratios(plain), folder / "ratios.png"))
    for curve in dict.fromkeys(line["curve"] for line in lines if "curve" in line):
        points = [line for line in lines if line.get("curve") == curve]
        paths.append(_save(_curve(points), folder / _file_name(curve)))
    for table in dict.fromkeys(line["table"] for line in lines if "table" in line):
        picture = _picture(11, 4.2)
        draw_bars(picture, [line for line in lines if line.get("table") == table])
        paths.append(_save(picture, folder / _file_name(table)))
    return paths


def _file_name(title: str) -> str:
    return f"{title.replace(' ', '-').replace('^', '')}.png"


def _picture(width: float, height: float) -> Picture:
    """A figure of its own, without pyplot's global state."""
    from matplotlib.figure import Figure as Picture

    return Picture(figsize=(width, height), layout="constrained")


def _save(picture: Picture, path: Path) -> Path:
    picture.savefig(path, dpi=100)
    return path


def _ratios(lines: Sequence[Line]) -> Picture:
    """Every ratio with its quartiles, the limit at 1, and the targets."""
    picture = _picture(9, 1.2 + 0.28 * len(lines))
    axes = picture.subplots()
    for place, line in enumerate(lines):
        ratio = line["ratio"]
        spread = [[ratio - line["ratio_p25"]], [line["ratio_p75"] - ratio]]
        axes.errorbar(ratio, place, xerr=spread, fmt="o", color=_MEASURED, capsize=3, markersize=4)
        if line.get("target") is not None:
            axes.plot(line["target"], place, "|", color=_TARGET, markersize=12, markeredgewidth=2)
    axes.axvline(1, color=_GREY, linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(range(len(lines)), [_label(line) for line in lines])
    axes.tick_params(axis="y", labelsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("times the cost of the limit; red: the target", fontsize=8)
    axes.grid(axis="x", which="both", alpha=0.25)
    return picture


def _label(line: Line) -> str:
    name: str = line["name"]
    return name if " beside " in name else f"{name} ÷ {line['limit_name']}"


def _curve(lines: Sequence[Line]) -> Picture:
    """Small multiples, one a unit: the series' medians with quartiles, and their limits dashed."""
    units = list(dict.fromkeys(line["unit"] for line in lines))
    picture = _picture(6.5 * len(units), 4.2)
    panels = picture.subplots(1, len(units), squeeze=False)[0]
    for axes, unit in zip(panels, units, strict=True):
        _panel(axes, [line for line in lines if line["unit"] == unit], unit)
    picture.suptitle(lines[0]["curve"], fontsize=10)
    return picture


def _panel(axes: Axes, lines: Sequence[Line], unit: str) -> None:
    for number, series in enumerate(dict.fromkeys(line["series"] for line in lines)):
        points = sorted((x for x in lines if x["series"] == series), key=lambda x: float(x["x"]))
        where = [point["x"] for point in points]
        color: Any = f"C{number}"
        axes.plot(where, [x["value"] for x in points], "o-", color=color, label=series)
        low, high = ([x[f"value_{part}"] for x in points] for part in ("p25", "p75"))
        axes.fill_between(where, low, high, color=color, alpha=0.2, linewidth=0)
        axes.plot(where, [x["limit"] for x in points], "--", color=color, linewidth=0.8, alpha=0.7)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    _plain_numbers(axes)
    places = sorted({line["x"] for line in lines})
    axes.set_xticks(places, [_power(place) for place in places])
    axes.set_xlabel(str(lines[0]["curve"]).rpartition(" against ")[2])
    axes.set_ylabel(unit)
    axes.grid(which="both", alpha=0.25)
    limits = ", ".join(dict.fromkeys(line["limit_name"] for line in lines))
    axes.legend(fontsize=7, title=f"dashed: {limits}", title_fontsize=7)


def _plain_numbers(axes: Axes) -> None:
    """Numbers up the side as they are; between the powers of ten where there are few of those."""
    from matplotlib.ticker import StrMethodFormatter

    low, high = axes.get_ylim()
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    if high < 20 * low:
        axes.yaxis.set_minor_formatter(StrMethodFormatter("{x:,g}"))
        axes.tick_params(axis="y", which="minor", labelsize=7)


def _power(x: float) -> str:
    exponent = round(math.log2(x))
    return f"$2^{{{exponent}}}$" if x > 4096 and x == 2**exponent else f"{x:g}"
