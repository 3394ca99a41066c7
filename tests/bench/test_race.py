from __future__ import annotations

from multiprocessing import Pipe
from pathlib import Path

import pytest

from bench import race
from bench.loop_setup import LoopSetup, play
from bench.race import Race, Stretch


def test_rates_and_times_of_a_stretch() -> None:
    stretch = Stretch(steps=200, wall=2.0, cpu=1.0)
    assert stretch.rate == 100.0
    assert stretch.microseconds() == 10_000.0
    assert stretch.microseconds(cpu=True) == 5_000.0


@pytest.mark.parametrize(
    "setup",
    [
        LoopSetup("a", frame="direct", warmup=256),
        LoopSetup("b", frame="fit", warmup=256, engine="eager", torch_acting=True),
        LoopSetup("c", frame="whole", warmup=256, lanes=2, lane_kind="sync"),
    ],
    ids=lambda setup: setup.frame,
)
def test_every_frame_plays_the_loop_until_told_to_stop(setup: LoopSetup, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    def round_ended(agent: object) -> bool:
        seen.append((agent.environment_steps, agent.counters.updates))  # type: ignore[attr-defined]
        return len(seen) < 8

    play(setup, tmp_path, round_ended)
    assert [steps for steps, _ in seen] == [64 * number for number in range(1, 9)]
    assert 0 < seen[-1][1] <= 64 * 8 - 256
    assert (tmp_path / "checkpoints" / "last.ckpt").exists() == (setup.frame == "whole")
    assert (tmp_path / "store").is_dir()


def test_the_same_work_in_every_frame(tmp_path: Path) -> None:
    """What Lightning costs is the difference between loops that do the same, bit for bit."""
    values = []

    def round_ended(agent: object) -> bool:
        values.append(agent.network.head.weight.detach().sum().item())  # type: ignore[attr-defined]
        return len(values) % 6 > 0

    for frame in ("direct", "fit", "whole"):
        play(LoopSetup("x", frame=frame, warmup=256), tmp_path / frame, round_ended)  # type: ignore[arg-type]
    assert values[:6] == values[6:12] == values[12:]
    assert len(set(values[:6])) > 1


def test_a_loop_s_failure_is_told_with_its_trace(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("in the way", encoding="utf-8")
    ours, theirs = Pipe()
    race._run(LoopSetup("blocked", frame="direct"), tmp_path / "run", theirs)
    with pytest.raises(RuntimeError, match=r"a loop failed:\n(.|\n)*NotADirectoryError"):
        race._answer(ours)
    theirs.close()
    with pytest.raises(RuntimeError, match="died without a word"):
        race._answer(ours)


def test_a_loop_runs_in_a_process_of_its_own_when_its_turn_comes(tmp_path: Path) -> None:
    setup = LoopSetup("a", frame="direct", rounds=2, warmup=256, updates_before=1)
    with Race([setup], tmp_path) as started:
        (turn,) = started.works.values()
        made = [turn(), turn()]
    for stretch in made:
        assert stretch.steps == 128
        assert stretch.cpu > 0
        assert stretch.wall > 0
