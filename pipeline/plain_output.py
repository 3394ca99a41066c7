"""Output that never fails for want of a character."""

from __future__ import annotations

import codecs
import io
import sys
from typing import Final

__all__ = ["forgive_encodings"]

_HANDLER: Final = "sharpwave-plain"
_PLAIN: Final = {
    "±": "+-",
    "…": "...",
    "–": "-",
    "−": "-",
    "×": "x",
    "√": "sqrt ",
    "β": "beta",
    "γ": "gamma",
    "μ": "mu",
    "π": "pi",
    "ρ": "rho",
    "σ": "sigma",
}


def forgive_encodings() -> None:
    """Lets both outputs spell out what their encoding lacks, instead of raising."""
    codecs.register_error(_HANDLER, _spell_out)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)


def _spell_out(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_PLAIN.get(letter, "?") for letter in lacking), error.end
