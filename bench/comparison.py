"""This run's ratios beside an earlier run's: which figures became slower, beyond noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from bench.results import BenchError, Line, read, runs

__all__ = ["Change", "changes", "compare_with", "earlier_run", "print_comparison"]

TOLERANCE: Final = 0.10
"""How far a ratio may move before it counts."""

Kind = Literal["slower", "faster", "same", "new", "gone"]


@dataclass(frozen=True, slots=True)
class Change:
    """One figure in two runs; `old` or `new` is None where a run lacks it."""

    name: str
    old: Line | None
    new: Line | None

    @property
    def kind(self) -> Kind:
        """Slower or faster: moved by more than a tenth, and the quartiles do not meet."""
        if self.old is None or self.new is None:
            return "new" if self.old is None else "gone"
        if _beyond(self.old, self.new):
            return "slower"
        return "faster" if _beyond(self.new, self.old) else "same"

    @property
    def shown(self) -> bool:
        """Figures of this run have a row; the many cells of tables only where something moved."""
        return self.new is not None and (self.kind != "same" or "table" not in self.new)

    def row(self) -> str:
        """One row of the table."""
        if self.old is None or self.new is None:
            change = "–"
        else:
            change = f"{100 * (self.new['ratio'] / self.old['ratio'] - 1):+.0f} %"
        shown = {"slower": "**slower**", "same": ""}.get(self.kind, self.kind)
        return f"| {self.name} | {_ratio(self.old)} | {_ratio(self.new)} | {change} | {shown} |"


def changes(old: Sequence[Line], new: Sequence[Line]) -> list[Change]:
    """The change of every figure that either run has, the new run's first."""
    before = {line["name"]: line for line in old}
    after = {line["name"]: line for line in new}
    names = [*after, *(name for name in before if name not in after)]
    return [Change(name, before.get(name), after.get(name)) for name in names]


def earlier_run(wish: str, results: Path, *, but: str | None = None) -> list[Line]:
    """The newest run of a file, or the newest of `results` whose revision begins with `wish`.

    `but` is the run that is to be compared, which is no earlier one.

    Raises:
        BenchError: no such file and no such revision, or a file that cannot be used.
    """
    path = Path(wish)
    if path.exists() or not results.exists():
        found = [lines for run, lines in runs(read(path)).items() if run != but]
        if not found:
            raise BenchError(f"{wish} holds no other run than the one to compare")
        return found[-1]
    for run, lines in reversed(runs(read(results)).items()):
        if run != but and wish and lines[0]["revision"].startswith(wish):
            return lines
    known = ", ".join(dict.fromkeys(lines[0]["revision"] for lines in runs(read(results)).values()))
    raise BenchError(
        f"there is no file {wish!r} and no run of that revision; {results} has {known}"
    )


def compare_with(wish: str, lines: Sequence[Line], results: Path) -> int:
    """Prints how a run compares with an earlier one; 1 where a figure became slower, else 0."""
    return print_comparison(earlier_run(wish, results, but=lines[0]["run"]), lines)


def print_comparison(old: Sequence[Line], new: Sequence[Line]) -> int:
    """Prints the table and the verdict; 1 where a figure became slower, else 0."""
    if old[0].get("processor") != new[0].get("processor"):
        print(f"note: {old[0]['revision']} was measured on another machine; ratios may differ\n")
    found = changes(old, new)
    print(f"| figure | before: {_run(old)} | now: {_run(new)} | change | |")
    print("|---|---|---|---|---|")
    print("\n".join(change.row() for change in found if change.shown))
    gone = sum(change.kind == "gone" for change in found)
    if gone:
        print(f"\n{gone} figures of {old[0]['revision']} were not measured now")
    slower = [change.name for change in found if change.kind == "slower"]
    print(f"\nslower than before: {'; '.join(slower) or 'nothing'}")
    return 1 if slower else 0


def _run(lines: Sequence[Line]) -> str:
    """What a run measured, and how thoroughly."""
    revision, effort = lines[0]["revision"], lines[0].get("effort")
    return revision if effort is None else f"{revision}, {effort}"


def _beyond(fast: Line, slow: Line) -> bool:
    moved: bool = slow["ratio"] > (1 + TOLERANCE) * fast["ratio"]
    return moved and bool(slow["ratio_p25"] > fast["ratio_p75"])


def _ratio(line: Line | None) -> str:
    if line is None:
        return "–"
    return f"{line['ratio']:.3g} ({line['ratio_p25']:.3g}–{line['ratio_p75']:.3g})"
