from __future__ import annotations

import pytest

from storage.errors import CheckpointError, ConfigError
from training import engine_choice
from training.engine_choice import COMPILED_FROM, choose_engine, keep_engine


def test_auto_takes_the_closed_form_where_there_is_one() -> None:
    assert choose_engine("auto", updates=10, fused=True) == "fused"


def test_auto_compiles_long_runs_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_choice, "_problem", lambda: None)
    assert choose_engine("auto", updates=COMPILED_FROM, fused=False) == "compiled"
    assert choose_engine("auto", updates=COMPILED_FROM - 1, fused=False) == "eager"


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_choice, "_problem", lambda: "no C++ compiler was found")
    assert choose_engine("auto", updates=COMPILED_FROM, fused=False) == "eager"
    with pytest.raises(ConfigError, match="compiler"):
        choose_engine("compiled", updates=COMPILED_FROM, fused=True)


def test_what_cannot_be() -> None:
    with pytest.raises(ConfigError, match="not possible for this agent"):
        choose_engine("fused", updates=1, fused=False)
    with pytest.raises(ConfigError, match="eager, compiled, fused"):
        choose_engine("warp", updates=1, fused=True)  # type: ignore[arg-type]


def test_a_resumed_run_keeps_its_engine() -> None:
    assert keep_engine("eager", "auto") == "eager"
    assert keep_engine("fused", "fused") == "fused"
    with pytest.raises(CheckpointError, match="cannot change to eager"):
        keep_engine("fused", "eager")
    with pytest.raises(CheckpointError, match="unknown"):
        keep_engine("warp", "auto")
