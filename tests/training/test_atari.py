from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from storage.errors import EnvironmentNotFoundError
from training.environment import EnvironmentConfig, make_environment


def test_atari_is_found_in_a_fresh_process_without_its_banner():
    """ale_py may not be imported yet, and its emulator introduces itself on stderr."""
    script = (
        "import gymnasium\n"
        "for name in [n for n in gymnasium.registry if n.startswith('ALE/')]:\n"
        "    del gymnasium.registry[name]\n"
        "from training.environment import EnvironmentConfig, make_environment\n"
        "for name in ['ALE/Pong-v5', 'ALE/Pong', 'PongNoFrameskip-v4']:\n"
        "    print(make_environment(EnvironmentConfig(name)).spec.id)\n"
    )
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", script]
    shown = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["ALE/Pong-v5", "ALE/Pong-v5", "PongNoFrameskip-v4"]
    assert shown.stderr == ""


@pytest.mark.parametrize(
    ("name", "close"), [("ALE/Pongg-v5", "ALE/Pong-v5"), ("Breakot-v4", "Breakout-v4")]
)
def test_close_names_of_unknown_games(name, close):
    with pytest.raises(EnvironmentNotFoundError, match=f"Close names: {close}"):
        make_environment(EnvironmentConfig(name))


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EnvironmentNotFoundError, match="pip install ale-py"):
        make_environment(EnvironmentConfig("ALE/Pong-v5"))
