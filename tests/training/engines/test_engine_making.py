"""What happens where updates cannot be compiled, with compilers and caches that really fail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from storage.errors import CheckpointError, ConfigError
from tests.training.engines.test_compiler import compiler
from tests.training.engines.test_engine import batch, network, schedule
from training.agents.vracer.gradient import VRacerGradient
from training.agents.vracer.stage import VRacerStage
from training.engines.adam import make_adam
from training.engines.compile_report import CompileError, compile_error
from training.engines.compiler import compiler_problem
from training.engines.engine_choice import COMPILED_FROM
from training.engines.engine_making import make_engine
from training.engines.fallback_engine import NotCompiledWarning
from training.refer import PRESETS

BREAKS_WHEN_LINKING = """
case "$*" in
  *-fsyntax-only*) exit 0;;
  *--version*) echo "c++ (none) 13.1.0"; exit 0;;
esac
echo "note: the linker comes next" >&2
echo "ld: error: cannot find -lgomp" >&2
exit 1"""
"""Passes every check that is made beforehand."""

REFUSAL = (
    "engine: compiled is not possible here: ld: error: cannot find -lgomp (repair the compiler, or "
    "the folder TORCHINDUCTOR_CACHE_DIR; or start a run with engine: eager)"
)

SCRIPT = """
import sys, torch
from tests.training.engines.test_engine_making import Run
from tests.training.engines.test_engine import batch, schedule
from training.engines.compile_report import CompileError

torch.set_num_threads(1)
if "insist" in sys.argv:
    insisted = Run("compiled")
    before = insisted.bits()
    try:
        insisted.engine.update(batch(0), schedule())
    except CompileError as error:
        print(error, error.__cause__, error.__suppress_context__)
    print(insisted.bits() == before)
runs = [Run("eager"), Run("auto")]
for run in runs:
    for i in range(3):
        run.engine.update(batch(i), schedule())
print([run.engine.name for run in runs], runs[0].bits() == runs[1].bits())
"""


class Run:
    """A network with its optimizer and engine, and the bits of all that updates change."""

    def __init__(self, wish, stage=None, **options):
        self.network = network()
        self.optimizer = make_adam(self.network.parameters(), learning_rate=1.0)
        own = VRacerStage(self.network, PRESETS["ReF-ER"], 0.995)
        options = {"updates": COMPILED_FROM} | options
        named = dict(self.network.named_parameters())
        made = own if stage is None else stage(own)
        self.engine = make_engine(made, named, self.optimizer, wish=wish, **options)

    def bits(self):
        states = [each for state in self.optimizer.state.values() for each in state.values()]
        tensors = [*self.network.parameters(), *states]
        return [tensor.detach().numpy().tobytes() for tensor in tensors]


def told(cache: Path, *words: str, **environment: str) -> tuple[list[str], list[str]]:
    """Lines on stdout and stderr of the script, in a process of its own."""
    variables = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(cache)} | environment
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words],
        cwd=Path(__file__).parents[3],
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines(), done.stderr.splitlines()


def test_a_compiler_that_breaks_late_leaves_no_trace(tmp_path):
    lines, warned = told(tmp_path / "cache", "insist", CXX=compiler(tmp_path, BREAKS_WHEN_LINKING))
    assert lines == [
        f"{REFUSAL} None True",
        "True",
        "['eager', 'eager'] True",
    ]
    assert warned[0].endswith(
        "NotCompiledWarning: updates cannot be compiled here: ld: error: cannot find -lgomp; "
        "the eager engine runs them, more slowly"
    )
    assert len(warned) == 1


@pytest.mark.skipif(compiler_problem() is not None, reason=str(compiler_problem()))
def test_a_full_cache_folder_leaves_no_trace(small_disk):
    with (small_disk / "fill").open("wb") as file, pytest.raises(OSError, match="No space"):
        file.write(bytes(2**24))
    lines, warned = told(small_disk)
    assert lines == ["['eager', 'eager'] True"]
    assert "No space left on device" in warned[0]
    assert len(warned) == 1


def reads_a_value(stage):
    """A stage that decides by a number of the batch, which no graph can hold."""

    def stage_of(parameters, batch, numbers):
        if float(batch.reward.sum()) > 1e9:
            raise ValueError
        return stage(parameters, batch, numbers)

    return stage_of


@pytest.mark.skipif(compiler_problem() is not None, reason=str(compiler_problem()))
def test_a_stage_that_cannot_be_traced_runs_eagerly():
    run, twin = Run("auto", reads_a_value), Run("eager")
    assert run.engine.name == "compiled"
    with pytest.warns(NotCompiledWarning) as caught:
        run.engine.update(batch(0), schedule())
    assert (run.engine.name, len(caught)) == ("eager", 1)
    assert "\n" not in str(caught[0].message)
    twin.engine.update(batch(0), schedule())
    assert run.bits() == twin.bits()
    insisted = Run("compiled", reads_a_value)
    with pytest.raises(CompileError, match="or start a run with engine: eager"):
        insisted.engine.update(batch(0), schedule())


@pytest.mark.skipif(compiler_problem() is not None, reason=str(compiler_problem()))
def test_a_resumed_run_that_compiled_does_not_change_its_engine():
    run = Run("auto", reads_a_value, recorded="compiled")
    with pytest.raises(CompileError, match="compiled is not possible here"):
        run.engine.update(batch(0), schedule())
    assert Run("auto", recorded="eager").engine.name == "eager"
    with pytest.raises(CheckpointError, match="cannot change to eager"):
        Run("eager", recorded="compiled")


def test_the_closed_form_is_taken_where_there_is_one():
    net = network()
    gradient = VRacerGradient(net, PRESETS["ReF-ER"], 0.995)
    optimizer = make_adam(net.parameters(), learning_rate=1.0)
    stage = VRacerStage(net, PRESETS["ReF-ER"], 0.995)
    named = dict(net.named_parameters())
    form = {"closed_form": lambda: gradient, "updates": COMPILED_FROM}
    assert make_engine(stage, named, optimizer, wish="auto", **form).name == "fused"
    assert make_engine(stage, named, optimizer, wish="eager", **form).name == "eager"
    assert Run("auto", updates=COMPILED_FROM - 1).engine.name == "eager"
    with pytest.raises(ConfigError, match="not possible for this agent"):
        Run("fused")
    for wish in ("auto", "fused"):
        with pytest.raises(CheckpointError, match="were run by the fused engine, but this agent"):
            Run(wish, recorded="fused")


def test_the_reason_is_the_compilers_first_error():
    text = "CppCompileError: C++ compile error\n\nCommand:\ng++ -Werror\n\nOutput:\n{}\n\nSet X=1"
    said = "In file included from a\n  a.h:1: fatal error: Python.h: no such file\nerror: more"
    reason = compile_error(RuntimeError(text.format(said))).reason
    assert reason == "a.h:1: fatal error: Python.h: no such file"
    assert compile_error(RuntimeError(text.format("Killed"))).reason == "Killed"
    assert compile_error(OSError(28, "No space")).reason == "[Errno 28] No space"
    assert compile_error(KeyError()).reason == "KeyError"
