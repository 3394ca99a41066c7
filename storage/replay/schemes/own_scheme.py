"""Schemes of the user's own, by class path."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from storage.class_path import load_object
from storage.errors import SamplingError

if TYPE_CHECKING:
    from storage.kernel import Floats32, Integers
    from storage.replay.schemes.scheme import Scheme
    from storage.replay.window import Window

__all__ = ["build_own_scheme", "own_scheme"]

_PARTS: Final = (
    *("name", "wants_errors", "nbytes", "admitted", "forgotten", "shifted", "rebuilt", "draw"),
    *("feed_back", "state_dict", "load_state_dict"),
)


def own_scheme(class_path: str) -> Callable[..., Scheme]:
    """What makes a scheme, at a class path.

    Raises:
        SamplingError: it cannot be imported, or is nothing that can be called.
    """
    try:
        found = load_object(class_path)
    except Exception as error:
        raise SamplingError(
            f"scheme {class_path!r} cannot be imported ({type(error).__name__}: {error}); correct "
            "the class path, or put its folder on PYTHONPATH"
        ) from error
    if not callable(found):
        raise SamplingError(f"scheme {class_path!r} is {found!r}; name a class")
    maker: Callable[..., Scheme] = found
    return maker


def build_own_scheme(class_path: str, taken: tuple[str, ...], **settings: Any) -> Scheme:
    """The scheme at a class path, made with `settings`; `taken` are names that it may not have.

    Raises:
        SamplingError: as of `own_scheme`, or what is made is no scheme; it says what is missing.
    """
    make = own_scheme(class_path)
    try:
        scheme = make(**settings)
    except TypeError as error:
        raise SamplingError(
            f"scheme {class_path!r} cannot be made ({error}); it is called with the keywords "
            f"{', '.join(settings)}"
        ) from error
    missing = [name for name in _PARTS if not hasattr(scheme, name)]
    if missing:
        raise SamplingError(
            f"scheme {class_path!r} lacks {', '.join(missing)}; see storage.replay.Scheme, or "
            "extend a scheme that has them"
        )
    if scheme.name in taken:
        raise SamplingError(
            f"scheme {class_path!r} has the name {scheme.name!r}, which checkpoints would take for "
            "another scheme's; give it a name of its own"
        )
    return cast("Scheme", _Checked(scheme, settings["window"], class_path))


class _Checked:
    """A scheme whose draws are looked at before rows are read where they point."""

    def __init__(self, scheme: Scheme, window: Window, class_path: str) -> None:
        self._scheme = scheme
        self._window = window
        self._class_path = class_path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scheme, name)

    def draw(self, positions: Integers, weights: Floats32, index: int) -> None:
        """Chooses the steps of draw number `index`.

        Raises SamplingError for a position outside the window, or a weight that is no number from
        0 on.
        """
        self._scheme.draw(positions, weights, index)
        head, tail = self._window.ends
        outside = np.flatnonzero((positions < head) | (positions >= tail))
        if outside.size:
            raise SamplingError(
                f"scheme {self._class_path!r} drew position {positions[outside[0]]}, outside the "
                f"window's {head} to {tail - 1}; correct its draw"
            )
        bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
        if bad.size:
            raise SamplingError(
                f"scheme {self._class_path!r} gave a step the sampling weight {weights[bad[0]]}; "
                "weights are finite and not negative: correct its draw"
            )
