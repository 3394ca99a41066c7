from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib.image

from bench.plots import draw
from bench.results import Line


def test_one_picture_of_all_ratios_and_one_a_curve(
    line: Callable[..., Line], tmp_path: Path
) -> None:
    lines = [line("act", 1.5, target=1.3), line("draw", 7.0)]
    for curve, unit in (("update against batch", "µs"), ("loop against lanes", "steps/s")):
        for series in ("eager", "fused"):
            for x in (32, 4096, 2**20):
                point = {"curve": curve, "series": series, "x": x, "unit": unit}
                lines.append(line(f"{curve} {series} {x}", 1.0 + x / 2**20, **point))
    paths = draw(lines, tmp_path / "plots")
    names = ["ratios.png", "update-against-batch.png", "loop-against-lanes.png"]
    assert [path.name for path in paths] == names
    for path in paths:
        picture = matplotlib.image.imread(path)
        assert picture.shape[0] > 100
        assert picture[..., :3].min() < 0.3  # something was drawn
        assert path.stat().st_size < 200_000


def test_a_table_of_peers_is_a_picture_of_bars(line: Callable[..., Line], tmp_path: Path) -> None:
    cells = [
        line(f"{column} {peer}", 1 / times, table="replay of 2^18 steps", column=column)
        | {"limit_name": peer, "limit": 2.0, "value": 2.0 / times}
        for column in ("draw 32", "append")
        for peer, times in (("a 1.0", 4.0), ("b 2.0", 300.0))
        if (column, peer) != ("append", "b 2.0")
    ]
    (path,) = draw(cells, tmp_path)
    assert path.name == "replay-of-218-steps.png"
    picture = matplotlib.image.imread(path)
    colours = {tuple(pixel) for pixel in (picture[::2, ::2, :3] * 255).astype(int).reshape(-1, 3)}
    assert {(31, 119, 180), (255, 127, 14), (44, 160, 44)} <= colours  # ours, a, b


def test_a_run_of_curves_alone_has_no_picture_of_ratios(
    line: Callable[..., Line], tmp_path: Path
) -> None:
    lines = [line("u", 1.0, curve="update against width", series="eager", x=64)]
    assert [path.name for path in draw(lines, tmp_path)] == ["update-against-width.png"]
