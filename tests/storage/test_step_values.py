from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from storage.errors import SchemaMismatchError
from storage.layout import BehaviourKind
from storage.step_values import exact, flag, integer, number, rounded

TOP = 2**64 - 1


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (np.array([2**53 + 1]), "f8"),
        (np.array([-(2**53) - 1]), "f8"),
        (np.array([0, TOP], np.uint64), "f8"),
        (np.array([2**63 - 1]), "f8"),
        (np.array([2**24 + 1], np.int32), "f4"),
        (np.array([2049], np.int16), "f2"),
        (np.array([70000]), "f2"),
        (np.array([-1]), "u8"),
        (np.array([TOP], np.uint64), "i8"),
        (np.array([2.0**63]), "i8"),
        (np.array([2.0**64]), "u8"),
        (np.array([256.0]), "u1"),
        (np.array([0.5]), "i8"),
        (np.array([np.nan]), "i8"),
        (np.array([2]), "?"),
        (np.array([0.1]), "f4"),
        (np.array([1 + 0j]), "f8"),
    ],
)
def test_what_a_dtype_cannot_hold_is_refused(value: np.ndarray, dtype: str) -> None:
    with pytest.raises(SchemaMismatchError, match=r"^observation: "):
        exact(value, "observation", np.dtype(dtype), value.shape)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (np.array([2**53, 2**53 + 2, -(2**63), 7]), "f8"),
        (np.array([2**63, 0], np.uint64), "f8"),
        (np.array([2048, -2050, 65504], np.int32), "f2"),
        (np.array([2.0**63 - 1024, -(2.0**63)]), "i8"),
        (np.array([2.0**63]), "u8"),
        (np.array([np.nan, np.inf, 0.5]), "f4"),
        (np.array([True, False]), "f8"),
        (np.array([0.0, 1.0]), "?"),
        (np.ma.masked_array([1.0, 2.0]), "f8"),
        (np.array([255], np.float16), "u8"),
    ],
)
def test_what_a_dtype_holds_is_kept(value: np.ndarray, dtype: str) -> None:
    kept = exact(value, "observation", np.dtype(dtype), value.shape)
    assert kept.dtype == np.dtype(dtype)
    assert str(kept.tolist()) == str(np.asarray(value).astype(dtype).tolist())
    for one, other in zip(kept.tolist(), value.tolist(), strict=True):
        assert one == other or one != one


def test_policy_numbers_are_rounded_to_float32() -> None:
    values = ([0.1, 2], np.array([0.1, 2]), np.array([0.1, 2], np.float32))
    for value in values:
        kept = rounded(value, "raw_action", 2)
        assert kept.dtype == np.float32
        assert kept.tolist() == [np.float32(0.1), 2.0]
    assert rounded([2**24 + 1, True], "raw_action", 2).tolist() == [2.0**24, 1.0]
    assert rounded([1e300, 0], "raw_action", 2).tolist() == [np.inf, 0.0]


def test_scalars_that_are_taken() -> None:
    rewards = (True, np.True_, 3, np.int8(3), 2**53 + 2, 2**70, np.float16(0.5), np.array(1.5))
    assert [number(value, "reward") for value in rewards] == [
        1,
        1,
        3,
        3,
        2**53 + 2,
        2**70,
        0.5,
        1.5,
    ]
    assert {type(number(value, "reward")) for value in rewards} == {float}
    kinds = (BehaviourKind.UNIFORM, np.uint8(3), 3, 3.0, np.array(3))
    assert [integer(value, "behaviour_kind") for value in kinds] == [3] * 5
    assert {type(integer(value, "behaviour_kind")) for value in kinds} == {int}
    assert integer(-(2**63), "policy_update") == -(2**63)
    for value in (1, np.int64(1), True, np.True_, np.array(True), np.array([True]), 1.0):
        assert flag(value, "terminated") is True
    for value in (0, False, np.False_, np.array([False]), np.array([[False]])):
        assert flag(value, "terminated") is False


@pytest.mark.parametrize("value", [Fraction(1, 3), "1", b"1", None, object(), [1, [2]], 1 + 0j])
def test_scalars_that_are_no_numbers(value: object) -> None:
    for convert in (number, integer, flag):
        with pytest.raises(SchemaMismatchError, match=r"^column: "):
            convert(value, "column")
