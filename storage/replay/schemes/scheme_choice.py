"""Which scheme a view draws by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.errors import SamplingError
from storage.replay.schemes.own_scheme import build_own_scheme
from storage.replay.schemes.prioritized import Prioritized
from storage.replay.schemes.prioritized_sequences import PrioritizedSequences
from storage.replay.schemes.priority_settings import PrioritySettings, SequenceSettings
from storage.replay.schemes.scheme_names import SCHEMES, refuse_scheme_name
from storage.replay.schemes.uniform import Uniform

if TYPE_CHECKING:
    from storage.replay.schemes.scheme import Scheme
    from storage.replay.window import Window

__all__ = ["build_scheme"]


def build_scheme(
    scheme: str,
    *,
    window: Window,
    seed: int,
    priorities: PrioritySettings,
    sequences: SequenceSettings,
) -> Scheme:
    """The scheme of that name, or at that class path, over a window.

    Raises:
        SamplingError: no such scheme (those that exist are listed), or settings of another kind.
    """
    refusal = refuse_scheme_name(scheme)
    if refusal:
        raise SamplingError(f"scheme {scheme!r} does not exist; {refusal}")
    for name, given, kind in (
        ("priorities", priorities, PrioritySettings),
        ("sequences", sequences, SequenceSettings),
    ):
        if not isinstance(given, kind):
            raise SamplingError(
                f"{name}={given!r}: give storage.replay.{kind.__name__}(…)"
                + (" or one of PRIORITY_PRESETS" if name == "priorities" else "")
            )
    if scheme not in SCHEMES:
        settings = {"seed": seed, "priorities": priorities, "sequences": sequences}
        return build_own_scheme(scheme, SCHEMES, window=window, **settings)
    if scheme == "uniform":
        return Uniform(window, seed)
    if scheme == "per":
        return Prioritized(window, seed, priorities)
    return PrioritizedSequences(window, seed, priorities, sequences)
