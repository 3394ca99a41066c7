"""An exception of the user's own code, told by that code's part of the traceback alone."""

from __future__ import annotations

import site
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Final

from storage.errors import SharpwaveError

__all__ = ["OwnCodeError", "own_faults", "raised_by"]

_OURS: Final = tuple(
    f"{Path(__file__).parents[1] / name}/" for name in ("pipeline", "training", "storage")
)
_LIBRARIES: Final = tuple(
    f"{folder}/"
    for folder in {
        *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "scripts")),
        *site.getsitepackages(),
        site.getusersitepackages(),
    }
)


class OwnCodeError(Exception):
    """Says what the user's code raised; its cause is the exception, with the whole traceback."""

    def __init__(self, error: Exception, began: TracebackType) -> None:
        """`began` is where the user's code was first called."""
        shown = traceback.TracebackException(type(error), error, began)
        super().__init__("".join(shown.format()).rstrip())


@contextmanager
def own_faults(named: tuple[str, ...]) -> Iterator[None]:
    """Turns an exception that the user's own code raised into an `OwnCodeError`.

    Frames of libraries and of Sharpwave that called the code are left out, those that it called
    stay. `named` are the class paths in the settings; any other code is the user's, too, unless it
    is part of Sharpwave or of an installed package.
    """
    try:
        yield
    except SharpwaveError:
        raise
    except Exception as error:
        frames = _own(error, named)
        if not frames:
            raise
        if not any(note.startswith("sharpwave: ") for note in getattr(error, "__notes__", ())):
            error.add_note(f"sharpwave: {raised_by(error, named)}")
        raise OwnCodeError(error, frames[0]) from error


def raised_by(error: Exception, named: tuple[str, ...]) -> str:
    """What of the user's code raised `error`, or may have led to it, as a sentence, or nothing."""
    frames = _own(error, named)
    if not frames:
        own = [each for each in named if "." in each or ":" in each]
        are = "is" if len(own) == 1 else "are"
        return f"{' and '.join(own)} {are} yours: look at what came of that code." if own else ""
    code, module = frames[-1].tb_frame.f_code, frames[-1].tb_frame.f_globals["__name__"]
    return f"{module}.{code.co_qualname} raised {type(error).__name__} (--debug shows all callers)."


def _own(error: Exception, named: tuple[str, ...]) -> list[TracebackType]:
    """The places of the traceback that are in the user's code, the outermost first."""
    roots = {_root(each) for each in named}
    found, place = [], error.__traceback__
    while place is not None:
        if _is_own(place.tb_frame, roots):
            found.append(place)
        place = place.tb_next
    return found


def _is_own(frame: FrameType, roots: set[str]) -> bool:
    file = frame.f_code.co_filename
    if file.startswith(("<", *_OURS)):
        return False
    return _root(frame.f_globals.get("__name__", "")) in roots or not file.startswith(_LIBRARIES)


def _root(name: str) -> str:
    return name.replace(":", ".").partition(".")[0]
