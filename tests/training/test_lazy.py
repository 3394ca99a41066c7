from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import training


def test_importing_the_package_loads_neither_torch_nor_lightning():
    script = "import sys, training; print('torch' in sys.modules, 'lightning' in sys.modules)"
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", script]
    shown = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["False", "False"]


def test_public_names_resolve_and_others_do_not():
    for name in training.__all__:
        assert getattr(training, name) is not None
    assert callable(training.build)
    assert callable(training.trainer)
    with pytest.raises(AttributeError, match="nothing"):
        _ = training.nothing
