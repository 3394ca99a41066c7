"""One measured figure and the limit that it is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

__all__ = ["Cell", "Figure", "Point", "Spread"]


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of repeated samples, with their quartiles."""

    median: float
    p25: float
    p75: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> Spread:
        """The three quartiles of at least one sample."""
        p25, median, p75 = np.quantile(np.asarray(samples, np.float64), (0.25, 0.5, 0.75))
        return cls(float(median), float(p25), float(p75))


@dataclass(frozen=True, slots=True)
class Point:
    """Where on a cost curve a figure lies."""

    curve: str
    """What it shows, such as "update against batch": the last word names the horizontal axis."""
    series: str
    """Which line of the plot."""
    x: float


@dataclass(frozen=True, slots=True)
class Cell:
    """Where in a table of peers a figure stands; its limit is the peer, and names the row."""

    table: str
    column: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A median and the limit that it is held against, both in `unit`, measured in turn.

    The ratio says how many times the limit's cost the figure is: 1 is the limit itself, larger is
    slower, for rates too. It is the median of the repeats' own ratios, so that what slows both down
    for a while does not move it.
    """

    name: str
    unit: str
    """Of times "µs"; of rates something that ends in "/s"."""
    value: Spread
    limit: Spread
    ratio: Spread
    repeats: int
    limit_name: str
    target: float | None = None
    """The largest ratio that is good enough; None where nothing was promised."""
    most: float | None = None
    """The largest value that is good enough, in `unit`; None where no such was promised."""
    place: Point | Cell | None = None
    """Where it is shown instead of a row of its own."""
    details: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        name: str,
        unit: str,
        values: Sequence[float],
        limits: Sequence[float],
        limit_name: str,
        *,
        target: float | None = None,
        most: float | None = None,
        place: Point | Cell | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> Figure:
        """The figure of samples that were taken in turn, a value and a limit each time.

        Raises:
            ValueError: values and limits are not as many, or there is none.
        """
        if not values or len(values) != len(limits):
            raise ValueError(f"{name}: {len(values)} values for {len(limits)} limits")
        rate = unit.endswith("/s")
        pairs = zip(values, limits, strict=True)
        ratios = [limit / value if rate else value / limit for value, limit in pairs]
        value, limit, ratio = (Spread.of(samples) for samples in (values, limits, ratios))
        return cls(
            name=name,
            unit=unit,
            value=value,
            limit=limit,
            ratio=ratio,
            repeats=len(values),
            limit_name=limit_name,
            target=target,
            most=most,
            place=place,
            details=dict(details or {}),
        )

    def line(self) -> dict[str, Any]:
        """The figure as one flat record of plain values."""
        numbers: dict[str, Any] = {"name": self.name, "unit": self.unit}
        for name in ("value", "limit", "ratio"):
            spread: Spread = getattr(self, name)
            numbers[name] = spread.median
            numbers[f"{name}_p25"], numbers[f"{name}_p75"] = spread.p25, spread.p75
        place = {} if self.place is None else asdict(self.place)
        rest = {"repeats": self.repeats, "limit_name": self.limit_name, "target": self.target}
        rest |= {} if self.most is None else {"most": self.most}
        return numbers | rest | place | {"details": self.details}
