"""A store's summary for people: aligned tables, plain where the output is no terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pipeline.summary import Spread, StoreSummary
from pipeline.summary_overlay import OverlaySummary, PrioritySummary
from storage.layout import Ending

__all__ = ["byte_text", "print_summary"]

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")
_SEGMENTS_SHOWN: Final = 12


def print_summary(summary: StoreSummary, console: Console) -> None:
    """Prints everything `summary` holds; long lists of segments are shortened in the middle."""
    for problem in summary.problems:
        _print_line(f"[bold red]problem:[/] {escape(problem)}", console)
    _print_head(summary, console)
    console.print(_episodes(summary))
    console.print(_columns(summary))
    console.print(_segments(summary))
    for overlay in summary.overlays:
        _print_overlay(overlay, console)
    used = [f"{name} {byte_text(size)}" for name, size in summary.disk_bytes.items()]
    _print_list("disk", used, console)
    _print_line("not verified; `sharpwave verify` reads every byte", console)


def byte_text(size: float) -> str:
    """`size` bytes in the largest unit that leaves a number of at least 1."""
    unit = 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:,.0f} B" if unit == 0 else f"{size:,.1f} {_UNITS[unit]}"


def _print_head(summary: StoreSummary, console: Console) -> None:
    drawn = [f"{count:,} {name}" for name, count in summary.behaviours.items() if count]
    _print_line(f"[bold]{escape(summary.path)}[/]", console)
    _print_line(f"{summary.environment}, format version {summary.format_version}", console)
    _print_line(f"uuid {summary.uuid}", console)
    _print_line(
        f"{_count(summary.steps, 'step')} in {_count(summary.episodes, 'episode')}, "
        f"{_count(len(summary.segments), 'segment')}",
        console,
    )
    if summary.dropped.segments:
        dropped = summary.dropped
        _print_line(
            f"dropped: {_count(dropped.segments, 'segment')}, "
            f"{_count(dropped.episodes, 'episode')}, {_count(dropped.steps, 'step')}; the "
            "episodes count in the table below",
            console,
        )
    if drawn:
        _print_list("actions by behaviour:", drawn, console)


def _print_line(text: str, console: Console) -> None:
    """One line, however long: paths and names are never cut."""
    console.print(text, highlight=False, soft_wrap=True)


def _print_list(head: str, parts: Sequence[str], console: Console) -> None:
    """`parts` behind `head`, in lines that break between parts only."""
    line = head
    for number, part in enumerate(parts):
        joined = f"{line}{', ' if number else ' '}{part}"
        if number and len(joined) + len(",") > console.width:
            _print_line(f"{line},", console)
            joined = f"  {part}"
        line = joined
    _print_line(line, console)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _table(title: str, headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """All columns but the first are aligned to the right."""
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    cells = [[str(cell) for cell in row] for row in rows]
    for number, header in enumerate(headers):
        texts = [header, *(row[number] for row in cells if number < len(row))]
        longest = max(len(word) for text in texts for word in text.split())
        table.add_column(header, justify="right" if number else "left", min_width=longest)
    for row in cells:
        table.add_row(*row)
    return table


def _episodes(summary: StoreSummary) -> Table:
    spreads = {"return": summary.returns, "length": summary.lengths}
    headers = ["episodes", "mean", "deviation", "smallest", "median", "largest", "mean of last 20"]
    endings = ", ".join(f"{count:,} {name}" for name, count in summary.endings.items() if count)
    if any(summary.endings[each.name.lower()] for each in Ending if not each.by_environment):
        endings += "; returns are of those terminated or truncated"
    table = _table("", headers, [_spread_row(n, s) for n, s in spreads.items() if s])
    table.caption, table.caption_justify = endings or "no episode yet", "left"
    return table


def _spread_row(name: str, spread: Spread) -> list[str]:
    numbers = (
        spread.mean,
        spread.deviation,
        spread.smallest,
        spread.median,
        spread.largest,
        spread.last_20_mean,
    )
    return [name, *(f"{number:,.1f}" for number in numbers)]


def _columns(summary: StoreSummary) -> Table:
    rows = [(c["name"], c["dtype"], tuple(c["shape"]) or "") for c in summary.columns]
    return _table("columns", ["name", "dtype", "row shape"], rows)


def _segments(summary: StoreSummary) -> Table:
    shown = summary.segments
    if len(shown) > _SEGMENTS_SHOWN:
        half = _SEGMENTS_SHOWN // 2
        shown = [*shown[:half], *shown[-half:]]
    rows: list[Sequence[Any]] = [
        (
            f"{s.id:06d}",
            s.run or "-",
            s.lane,
            f"{s.steps:,}",
            f"{s.episodes:,}",
            "sealed" if s.sealed else "unsealed",
            _minute(s.begun),
            _minute(s.last_episode),
        )
        for s in shown
    ]
    if len(shown) < len(summary.segments):
        rows.insert(len(shown) // 2, [f"… {len(summary.segments) - len(shown):,} more"])
    headers = ["segment", "run", "lane", "steps", "episodes", "state", "begun (UTC)", "last (UTC)"]
    return _table("segments", headers, rows)


def _minute(moment: str | None) -> str:
    """A time without its seconds, so that the table fits on 80 columns."""
    return moment[:-3] if moment else "-"


def _print_overlay(overlay: OverlaySummary, console: Console) -> None:
    facts = [f"of {overlay.steps:,} steps of the whole store"]
    if overlay.far_fraction is not None:
        facts += [f"{overlay.far_steps:,} far ({overlay.far_fraction:.1%})"]
    facts += [f"drawn {overlay.drawn:,} times"]
    if overlay.priorities is None:
        facts += ["none has a priority"]
    where = "" if overlay.folder is None else f" in {escape(overlay.folder)}"
    _print_list(f"overlay [bold]{escape(overlay.name)}[/]{where}:", facts, console)
    _print_line("  (n_far/N of metrics and curves counts the run's window only)\n", console)
    if overlay.priorities is not None:
        _print_priorities(overlay.priorities, console)


def _print_priorities(priorities: PrioritySummary, console: Console) -> None:
    """How steps are drawn, and those of the largest priority."""
    rule = priorities.rule
    where = (
        "of the store with a priority, in the window or not"
        if rule.window is None
        else f"in the window of {rule.window:,}"
    )
    facts = [f"of {_count(priorities.steps, 'step')} {where}", f"exponent {escape(rule.source)}"]
    _print_list(f"probability: p^{rule.exponent:g} over its sum,", facts, console)
    rows = [
        (
            f"{p.segment:06d}/{p.row}",
            p.episode,
            p.step,
            f"{p.priority:.6g}",
            f"{p.probability:.3g}",
            f"{p.drawn:,}",
        )
        for p in priorities.top
    ]
    headers = ["segment/row", "episode", "step", "priority", "probability", "times drawn"]
    console.print(_table("steps by priority", headers, rows))
