from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.figure import Figure
from bench.results import Line


@pytest.fixture
def line() -> Callable[..., Line]:
    """Makes a line of a made-up figure; its ratio's quartiles are `spread` to either side."""

    def make(name: str, ratio: float, *, spread: float = 0.01, **more: Any) -> Line:
        figure = Figure.of(name, "µs", [ratio * 2.0], [2.0], "the limit").line()
        quartiles = {"ratio_p25": ratio - spread, "ratio_p75": ratio + spread}
        return {"run": "1", "revision": "aaa", "processor": "P"} | figure | quartiles | more

    return make


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes lines, or text as it is, to a file of results."""

    def write_lines(*lines: Line | str, name: str = "old.jsonl") -> Path:
        path = tmp_path / name
        texts = [each if isinstance(each, str) else json.dumps(each) for each in lines]
        path.write_text("\n".join(texts) + "\n", encoding="utf-8")
        return path

    return write_lines
