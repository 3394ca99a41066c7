"""What a setting may be, by kind, so that none reaches a library that cannot hold it."""

from __future__ import annotations

import dataclasses
import math
from numbers import Integral
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from storage.errors import ConfigError

__all__ = [
    "FLOAT32_MAX",
    "FLOAT32_TINY",
    "check_fields",
    "check_positive",
    "check_stdev",
    "require",
    "shown",
]

FLOAT32_TINY: Final = 2.0**-126
"""The smallest positive number that float32 holds with all its digits."""
FLOAT32_MAX: Final = (2 - 2.0**-23) * 2.0**127
_INT_END: Final = 2**63
"""The first whole number that int64 cannot hold."""
_STDEVS: Final = (1e-6, 1e6)
_LONGEST: Final = 60
"""Characters of a refused value in a message."""


def require(condition: bool, message: str) -> None:
    """Raises `ConfigError` with `message` where `condition` does not hold."""
    if not condition:
        raise ConfigError(message)


def check_fields(section: str, settings: Any) -> None:
    """Raises `ConfigError` at a field of the dataclass that its type or its numbers refuse.

    A number must be finite and below 2**63 (those in lists, too), a field of type int a whole one,
    that of a Literal type one of its values, and that of a dict type a dict.
    """
    hints = _hints(type(settings))
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        for each in value if isinstance(value, list) else [value]:
            where = f"{section}.{field.name} is {shown(each)}"
            if isinstance(each, float):
                require(math.isfinite(each), f"{where}; it must be finite")
            elif isinstance(each, int):
                require(abs(each) < _INT_END, f"{where}; it must be below 2**63")
        _check_kind(f"{section}.{field.name}", value, hints.get(field.name))


def _check_kind(name: str, value: Any, hint: Any) -> None:
    if hint is int:
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        require(whole, f"{name} is {shown(value)}; it must be a whole number")
    elif get_origin(hint) is dict:
        wanted = "settings by name, as {name: value}"
        require(isinstance(value, dict), f"{name} is {shown(value)}; it must be {wanted}")
    elif get_origin(hint) is Literal:
        choices = get_args(hint)
        listed = ", ".join(map(str, choices))
        require(value in choices, f"{name} is {shown(value)}; choose one of {listed}")


def _hints(kind: type) -> dict[str, Any]:
    """Types of a dataclass's fields; none of a class of the user's own that hides some of them."""
    try:
        return get_type_hints(kind)
    except NameError:
        return {}


def check_positive(name: str, value: float) -> None:
    """Raises `ConfigError` where `value` is not positive, or float32 cannot hold it."""
    require(value > 0, f"{name} is {value}; it must be positive")
    if isinstance(value, float):
        require(
            FLOAT32_TINY <= value <= FLOAT32_MAX,
            f"{name} is {value}; it must lie between {FLOAT32_TINY:.3g} and {FLOAT32_MAX:.3g}, "
            "what float32 holds",
        )


def check_stdev(name: str, value: float) -> None:
    """Raises `ConfigError` where densities and divergences of such a deviation leave float32."""
    least, most = _STDEVS
    require(
        least <= value <= most,
        f"{name} is {value}, in half-ranges of the action box; it must lie between {least:g} and "
        f"{most:g}",
    )


def shown(value: Any) -> str:
    """The value as in Python, without the middle of a long one."""
    text = repr(value)
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[:half]}…{text[-half:]}"
