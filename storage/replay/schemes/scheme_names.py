"""Names of the schemes; importing this loads none of them."""

from __future__ import annotations

import difflib
from typing import Any, Final

from storage.class_path import is_class_path

__all__ = ["SCHEMES", "refuse_scheme_name"]

SCHEMES: Final = ("uniform", "per", "pser")
"""The schemes that come with Sharpwave."""


def refuse_scheme_name(name: Any) -> str:
    """Why a name is neither a scheme's nor the class path of one; empty where it may be.

    Nothing is imported.
    """
    if name in SCHEMES or (isinstance(name, str) and is_class_path(name)):
        return ""
    close = difflib.get_close_matches(str(name), SCHEMES, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"{hint}Choose one of {', '.join(SCHEMES)}, or give the class path of your own"
