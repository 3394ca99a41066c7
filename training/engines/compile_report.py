"""What is told of a compilation: one line, whatever torch and the compiler say."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from storage.errors import ConfigError

__all__ = ["CompileError", "NotKeptWarning", "compile_error", "compiling_quietly"]

_LOGGERS = ("torch._inductor.codecache", "torch._functorch._aot_autograd.autograd_cache")
"""Those of torch that say, with tracebacks, that code could not be cached."""


class CompileError(ConfigError):
    """An update that could not be compiled; parameters and optimizer are as they were."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"engine: compiled is not possible here: {reason} (repair the compiler, or the folder "
            "TORCHINDUCTOR_CACHE_DIR; or start a run with engine: eager)"
        )
        self.reason = reason


class NotKeptWarning(UserWarning):
    """Compiled code that could not be kept for later processes."""


def compile_error(error: Exception) -> CompileError:
    """An error with the first line that says something: the compiler's, else the message's."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = lines[lines.index("Output:") + 1 :] if "Output:" in lines else lines
    errors = (line for line in said if "error:" in line.lower())
    return CompileError(next(errors, said[0] if said else type(error).__name__))


@contextmanager
def compiling_quietly() -> Iterator[None]:
    """Says in one line, instead of torch's many, that compiled code could not be cached."""
    losses = _Losses()
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(losses)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(losses)
    if losses.first is not None:
        warnings.warn(
            f"the compiled code could not be kept, so the next run compiles anew: {losses.first}; "
            "make room, or let TORCHINDUCTOR_CACHE_DIR name another folder",
            NotKeptWarning,
            stacklevel=5,
        )


class _Losses(logging.Filter):
    """Holds warnings back and remembers the first reason."""

    first: str | None = None

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno != logging.WARNING:
            return True
        error = record.exc_info[1] if record.exc_info else None
        self.first = self.first or str(error or record.getMessage())
        return False
