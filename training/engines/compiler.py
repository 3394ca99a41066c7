"""Whether this machine can compile updates, found out before anything is trained."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from functools import cache

__all__ = ["compiler_problem"]

_TRIAL = "#include <cmath>\n#include <Python.h>\nint main() { return 0; }\n"
_TRIAL_SECONDS = 60


def compiler_problem(device: str = "cpu") -> str | None:
    """Why updates cannot be compiled for a device, and the remedy; None if nothing speaks against.

    For the CPU the compiler that torch takes (``CXX``, else g++ or clang++) must read a few lines
    with C++'s and Python's headers; for CUDA triton must be installed.
    """
    if device == "cuda":
        found = importlib.util.find_spec("triton") is not None
        return None if found else "triton is not installed (pip install triton)"
    return _cpp_problem(os.environ.get("CXX") or _default_compiler())


def _default_compiler() -> str:
    return "clang++" if sys.platform == "darwin" else "g++"


@cache
def _cpp_problem(compiler: str) -> str | None:
    if shutil.which(compiler) is None:
        return f"no C++ compiler {compiler} was found (install g++ or clang++, or set CXX)"
    include = sysconfig.get_paths()["include"]
    command = [compiler, "-fsyntax-only", "-x", "c++", f"-I{include}", "-"]
    try:
        done = subprocess.run(
            command,
            input=_TRIAL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TRIAL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"the C++ compiler {compiler} cannot be run: {error} (repair it, or set CXX)"
    if done.returncode == 0:
        return None
    lines = done.stderr.splitlines()
    said = next((line for line in lines if "error" in line), lines[0] if lines else "no message")
    return (
        f"the C++ compiler {compiler} fails with code {done.returncode}: {said.strip()} "
        "(repair it, or set CXX)"
    )
