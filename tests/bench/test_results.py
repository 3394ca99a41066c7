from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bench.circumstances import circumstances
from bench.figure import Figure
from bench.results import BenchError, Line, append, newest, read, runs


def test_what_was_appended_is_read_back_with_its_circumstances(tmp_path: Path) -> None:
    path = tmp_path / "new" / "results.jsonl"
    first = append([Figure.of("append", "µs", [3.0], [1.0], "arrays")], path, circumstances())
    second = append([Figure.of("act", "µs", [4.0], [2.0], "products")], path, circumstances())
    lines = read(path)
    assert lines == [*first, *second]
    assert [line["name"] for line in lines] == ["append", "act"]
    assert lines[0]["versions"]["numpy"] == np.__version__
    assert {"revision", "processor", "cores", "load", "python", "threads"} <= lines[0].keys()
    assert len(runs(lines)) == 2


def test_the_newest_of_each_name(line: Callable[..., Line]) -> None:
    lines = [line("a", 1.0), line("b", 2.0), line("a", 3.0, run="2")]
    assert [(each["name"], each["ratio"]) for each in newest(lines)] == [("a", 3.0), ("b", 2.0)]
    assert list(runs(lines)) == ["1", "2"]


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"none.jsonl cannot be read: No such file.*results.jsonl"):
        read(tmp_path / "none.jsonl")


def test_a_folder_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="cannot be read: Is a directory"):
        read(tmp_path)
    (tmp_path / "x").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(BenchError, match="it is no text"):
        read(tmp_path / "x")


def test_an_empty_file(write: Callable[..., Path]) -> None:
    with pytest.raises(BenchError, match="holds no figure"):
        read(write(""))


def test_a_broken_line_is_named(write: Callable[..., Path], line: Callable[..., Line]) -> None:
    with pytest.raises(BenchError, match=r"old.jsonl, line 2: no JSON"):
        read(write(line("a", 1.0), '{"name": "b", "val'))


@pytest.mark.parametrize("other", ["[1]", "3", '{"name": "a", "value": 1.0}'])
def test_a_line_of_something_else_is_named(write: Callable[..., Path], other: str) -> None:
    with pytest.raises(BenchError, match=r"line 1: no figure of this release.*ratio_p75"):
        read(write(other))
