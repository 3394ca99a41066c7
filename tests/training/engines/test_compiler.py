from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from training.engines.compiler import compiler_problem


def compiler(folder: Path, script: str) -> str:
    path = folder / "c++"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exit 1", "fails with code 1: no message"),
        (
            "echo warming up >&2; echo 'x.h: error: no Python.h' >&2; exit 3",
            "fails with code 3: x.h: error: no Python.h (repair it, or set CXX)",
        ),
        ("kill -9 $$", "fails with code -9"),
    ],
)
def test_a_compiler_that_fails_is_named_with_its_first_error(
    tmp_path, monkeypatch, script, message
):
    monkeypatch.setenv("CXX", compiler(tmp_path, script))
    problem = compiler_problem()
    assert problem is not None
    assert str(tmp_path) in problem
    assert message in problem


def test_a_compiler_that_is_none_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", str(tmp_path / "nothing"))
    assert "was found (install g++" in str(compiler_problem())
    path = tmp_path / "text"
    path.write_bytes(b"\x7fELF but no program")
    path.chmod(0o755)
    monkeypatch.setenv("CXX", str(path))
    assert "cannot be run" in str(compiler_problem())


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
def test_a_real_compiler_passes(monkeypatch):
    monkeypatch.setenv("CXX", "g++")
    assert compiler_problem() is None


def test_cuda_needs_triton():
    installed = importlib.util.find_spec("triton") is not None
    assert (compiler_problem("cuda") is None) == installed
