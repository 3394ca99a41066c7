"""Powers by polynomials, against decimal arithmetic."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest

from storage.powers import power, raise_to

EDGES = [1.0, 0.5, 2.0, np.sqrt(0.5), np.nextafter(1.0, 0.0), np.nextafter(1.0, 2.0)]
EDGES += [1.401298464324817e-45, 1.1754943508222875e-38, 3.4028234663852886e38, 1e-83]


def numbers() -> np.ndarray:
    draw = np.random.default_rng(0)
    return np.concatenate([EDGES, 10.0 ** draw.uniform(-44, 38, 200), draw.uniform(0.01, 1, 200)])


@pytest.mark.parametrize("exponent", [0.0, 1e-3, 0.123, 0.4, 0.5, 0.6, 0.7, 0.999, 1.0])
def test_powers_are_right_to_2e_14(exponent: float) -> None:
    given = numbers()
    raised = given.copy()
    raise_to(exponent, raised)
    with localcontext() as context:
        context.prec = 40
        for number, found in zip(given, raised, strict=True):
            wanted = Decimal(float(number)) ** Decimal(exponent)
            assert abs(Decimal(float(found)) / wanted - 1) < Decimal("2e-14")


@pytest.mark.parametrize("exponent", [0.0, 0.37, 0.5, 0.6, 1.0])
@pytest.mark.parametrize("size", [1, 7, 8, 9, 410])
def test_a_single_number_has_the_bits_that_many_have(exponent: float, size: int) -> None:
    given = numbers()[:size]
    raised = given.copy()
    raise_to(exponent, raised)
    assert raised.tolist() == [power(float(number), exponent) for number in given]


@pytest.mark.parametrize("exponent", [0.0, 0.5, 0.6, 1.0])
def test_nothing_stays_nothing_and_one_stays_one(exponent: float) -> None:
    raised = np.array([0.0, 1.0, 0.0])
    raise_to(exponent, raised)
    assert raised.tolist() == [0.0, 1.0, 0.0]
    assert power(0.0, exponent) == 0.0
