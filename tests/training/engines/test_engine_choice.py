from __future__ import annotations

import pytest

from storage.errors import CheckpointError, ConfigError
from training.engines import engine_choice
from training.engines.engine_choice import COMPILED_FROM, check_engine, choose_engine, keep_engine


def test_auto_takes_the_closed_form_where_there_is_one() -> None:
    assert choose_engine("auto", updates=10, fused=True) == "fused"


def test_auto_compiles_long_runs_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_choice, "compiler_problem", lambda device: None)
    assert choose_engine("auto", updates=COMPILED_FROM, fused=False) == "compiled"
    assert choose_engine("auto", updates=COMPILED_FROM - 1, fused=False) == "eager"


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/nowhere/c++")
    assert choose_engine("auto", updates=COMPILED_FROM, fused=False) == "eager"
    with pytest.raises(ConfigError, match=r"no C\+\+ compiler /nowhere/c\+\+ was found.*auto"):
        choose_engine("compiled", updates=COMPILED_FROM, fused=True)


def test_fused_updates_stay_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_choice, "compiler_problem", lambda device: None)
    assert choose_engine("auto", updates=COMPILED_FROM, fused=True, device="cuda") == "compiled"
    assert choose_engine("auto", updates=1, fused=True, device="cuda") == "eager"
    with pytest.raises(ConfigError, match=r"fused runs on the CPU only.*loop\.accelerator: cpu"):
        check_engine("fused", "cuda")


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


@pytest.mark.parametrize(("recorded", "remedy"), [(False, "choose auto"), (True, "a new run")])
def test_a_missing_compiler_comes_with_a_remedy_that_helps(monkeypatch, recorded, remedy):
    monkeypatch.setenv("CXX", "/bin/false")
    with pytest.raises(ConfigError, match=f"not possible here: .*{remedy}"):
        engine_choice.check_engine("compiled", "cpu", recorded=recorded)
