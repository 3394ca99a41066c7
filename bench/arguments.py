"""Command lines whose errors are one line."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

__all__ = ["Arguments"]


class Arguments(argparse.ArgumentParser):
    """An argument parser of `python -m MODULE`; bad input gives one line and exit status 2."""

    def __init__(self, module: str, description: str | None) -> None:
        super().__init__(f"python -m {module}", description=description, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Prints the message and leaves."""
        print(f"error: {message} (see {self.prog} --help)", file=sys.stderr)
        sys.exit(2)
