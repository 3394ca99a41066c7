from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

import storage
from pipeline.collect import main
from storage import BehaviourKind
from storage.errors import ConfigError, EnvironmentNotFoundError, SchemaMismatchError
from training.environments.atari_settings import AtariSettings
from training.environments.environment import describe_environment
from training.environments.environment_config import EnvironmentConfig

SHORT = "--environment.kwargs={max_frames: 80, noop_max: 5}"


def collect(path: Path, *options: str, game: str = "Atari/Pong", steps: int = 60) -> None:
    main([game, f"--steps={steps}", f"--store={path}", *options])


def test_in_a_process_of_its_own_then_looked_at_and_verified(sharpwave, tmp_path: Path) -> None:
    done = sharpwave("collect", "Atari/pong", "--steps=300", "--store=pong", "--lanes=2")
    assert "Atari/Pong: 300 steps take up to" in done.stdout
    assert done.stderr == ""
    shown = sharpwave("inspect", "pong").stdout
    assert "Atari/Pong, format version 1" in shown
    assert "actions by behaviour: 300 categorical" in shown
    assert "observation        uint8    (84, 84)" in shown
    assert "life_lost" in shown
    assert "sound" in sharpwave("verify", "pong").stdout
    with storage.open(tmp_path / "pong") as store:
        kinds = store.columns["kind"][:]
        behaviour = store.columns["behaviour"][:][kinds == 1]
        np.testing.assert_array_equal(behaviour, np.full((300, 6), np.float32(1 / 6)))
        used = store.columns["behaviour_kind"][:][kinds == 1]
        assert set(used.tolist()) == {BehaviourKind.CATEGORICAL}


def test_a_store_grows_by_the_game_however_it_is_spelled_but_by_no_other(tmp_path: Path) -> None:
    collect(tmp_path / "s", SHORT)
    collect(tmp_path / "s", SHORT, "--seed=1", game="Atari/pong")
    with storage.open(tmp_path / "s") as store:
        assert store.n_steps == 120
        assert store.env_spec.max_episode_steps == 20
        assert len(store.episodes) == 6
    with pytest.raises(SchemaMismatchError, match=r"environment\.kwargs"):
        collect(tmp_path / "s", "--seed=2")
    with pytest.raises(SchemaMismatchError, match="Atari/Pong"):
        collect(tmp_path / "s", SHORT, "--seed=2", game="Atari/Seaquest")


def test_a_store_of_another_form_is_refused_saying_which(tmp_path: Path) -> None:
    """Someone made it by hand, with whole stacks."""
    storage.create(tmp_path / "s", describe_environment(EnvironmentConfig("Atari/Pong"))).close()
    with pytest.raises(SchemaMismatchError, match=r"frame_stack None, .* frame_stack 4; give an"):
        collect(tmp_path / "s")


def test_the_document_has_every_setting_and_its_example_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = (Path(__file__).parents[2] / "docs/atari.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `(\w+)` \| (\S+) \|", text, flags=re.MULTILINE)
    assert told == [(name, str(value)) for name, value in asdict(AtariSettings()).items()]
    (example,) = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    exec(compile(example, "docs/atari.md", "exec"), {})
    assert capsys.readouterr().out == "(4, 84, 84) 5 ['NOOP', 'FIRE', 'RIGHT', 'LEFT']\n"


def test_what_cannot_be_played_is_refused_before_there_is_a_store(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentNotFoundError, match="Close names: Atari/Pong"):
        collect(tmp_path / "s", game="Atari/Pongg")
    with pytest.raises(ConfigError, match=r"environment\.kwargs\.stack is 0"):
        collect(tmp_path / "s", "--environment.kwargs={stack: 0}")
    assert list(tmp_path.iterdir()) == []
