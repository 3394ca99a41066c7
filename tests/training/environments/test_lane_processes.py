"""Lanes in processes of their own that die, raise, hang or are interrupted."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode

import storage
from storage import EnvironmentSpec
from storage.errors import EnvironmentFaultError
from tests.training.test_collector import StepNumbers
from tests.training.zoo import Counting
from training.collector import Collector
from training.environments.lane_processes import Undisturbed
from training.environments.vector_lanes import VectorLanes


class Failing(Counting):
    """Does something at its fifth step, if it is the one lane that fails."""

    def __init__(self, failure: str, lane: int) -> None:
        super().__init__(3)
        self.failure = failure if lane == 1 else ""
        self.taken = 0

    def step(self, action):
        self.taken += 1
        if self.taken == 5:
            if self.failure == "raise":
                raise KeyError("joint")
            if self.failure == "oserror":
                raise OSError("no simulator")
            if self.failure == "exit":
                os._exit(3)
            if self.failure == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.failure == "hang":
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                time.sleep(600)
        return super().step(action)


def _lanes(failure: str, lanes: int = 3) -> tuple[VectorLanes, list[int]]:
    makers = [partial(Failing, failure, lane) for lane in range(lanes)]
    env = AsyncVectorEnv(makers, autoreset_mode=AutoresetMode.DISABLED)
    return VectorLanes(env), [process.pid for process in env.processes]


def _collect(path: Path, lanes: VectorLanes, steps: int = 60) -> None:
    env = Counting()
    spec = EnvironmentSpec("Counting", env.observation_space, env.action_space)
    try:
        with storage.create(path, spec) as store, store.writer(lanes=lanes.n_lanes) as writer:
            collector = Collector(lanes, writer, StepNumbers(), seed=7)
            while collector.steps < steps:
                collector.advance()
    finally:
        lanes.close()


def _running(pids: list[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


@pytest.mark.filterwarnings("error:.*ERROR")
@pytest.mark.parametrize(
    ("failure", "message"),
    [
        ("raise", "the environment's step raised KeyError: 'joint'$"),
        ("oserror", "the environment's step raised OSError: no simulator$"),
        ("exit", "the environment's process ended with exit code 3 in its step$"),
        ("kill", "the environment's process was killed by SIGKILL in its step; .*memory"),
    ],
)
def test_a_failing_process_is_named_and_none_is_left(tmp_path, failure, message):
    lanes, pids = _lanes(failure)
    with pytest.raises(EnvironmentFaultError, match=f"^lane 1, episode 1, step 1: {message}"):
        _collect(tmp_path / "s", lanes)
    assert _running(pids) == []
    with storage.open(tmp_path / "s") as store:
        lengths = [len(np.asarray(each.reward)) for each in store.iterate_episodes()]
        assert sorted(lengths) == [1, 1, 1, 3, 3, 3]  # what was open is cut where it was whole


def test_a_process_that_dies_between_two_steps_is_named(tmp_path):
    lanes, pids = _lanes("")
    for lane in range(3):
        lanes.reset(lane, lane)
    os.kill(pids[2], signal.SIGKILL)
    multiprocessing.connection.wait([lanes._env.processes[2].sentinel], 10)
    with pytest.raises(EnvironmentFaultError, match="killed by SIGKILL") as caught:
        lanes.step(0, [np.zeros(1, np.float32)] * 3)
    assert caught.value.lane == 2
    lanes.close()
    lanes.close()
    assert _running(pids) == []


def test_a_process_that_hangs_is_ended(monkeypatch):
    monkeypatch.setattr("training.environments.lane_processes._PATIENCE", 0.3)
    lanes, pids = _lanes("hang")
    action = [np.zeros(1, np.float32)] * 3
    for lane in range(3):
        lanes.reset(lane, lane)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 3.0)
    try:
        for _ in range(4):
            lanes.step(0, action)
        with pytest.raises(KeyboardInterrupt):
            lanes.step(0, action)
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    lanes.close()
    assert _running(pids) == []


def test_only_the_owner_is_disturbed():
    before = signal.getsignal(signal.SIGINT)
    env = AsyncVectorEnv([Undisturbed(partial(Counting, 3))] * 2)
    try:
        assert signal.getsignal(signal.SIGINT) is before
        env.reset(seed=1)
        for process in env.processes:
            os.kill(process.pid, signal.SIGINT)
        env.step(np.zeros((2, 1), np.float32))
        assert all(process.is_alive() for process in env.processes)
    finally:
        env.close()


_RUN = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
import numpy as np
from tests.training.environments.test_lane_processes import Counting, _collect
from training.environments.vector_lanes import VectorLanes
from training.environments.lane_processes import Undisturbed
from gymnasium.vector import AsyncVectorEnv, AutoresetMode
from functools import partial
make = partial(Counting, 50)
if sys.argv[2] == "undisturbed":
    make = Undisturbed(make)
env = AsyncVectorEnv([make] * 3, autoreset_mode=AutoresetMode.DISABLED)
print(*[process.pid for process in env.processes], flush=True)
try:
    _collect(sys.argv[1], VectorLanes(env), 10**9)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("makers", ["undisturbed", "plain"])
@pytest.mark.parametrize("to", ["group", "parent"])
def test_ctrl_c_leaves_neither_processes_nor_halves_of_episodes(tmp_path, makers, to):
    """A terminal's Ctrl-C reaches the whole group at once."""
    store = tmp_path / "s"
    process = subprocess.Popen(
        [sys.executable, "-c", _RUN, str(store), makers],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    pids = [int(word) for word in process.stdout.readline().split()]
    assert len(pids) == 3
    while not list(store.glob("log/*.log")) or not any(
        log.stat().st_size > 2000 for log in store.glob("log/*.log")
    ):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    (os.killpg if to == "group" else os.kill)(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    if makers == "undisturbed":
        assert (process.returncode, output.strip(), errors.strip()) == (0, "interrupted", "")
    assert _running(pids) == []
    with storage.open(store) as opened:
        assert opened.n_episodes > 3
        for episode in opened.iterate_episodes():
            steps = np.asarray(episode.observation)[:, 1]
            assert steps.tolist() == list(range(len(steps)))


def test_lanes_whose_parent_was_killed_leave_without_a_word(tmp_path):
    said = tmp_path / "said"
    with said.open("wb") as errors:
        child = subprocess.Popen(
            [sys.executable, "-c", _RUN, str(tmp_path / "s"), "undisturbed"],
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        pids = list(map(int, child.stdout.readline().split()))
        time.sleep(0.2)
        child.kill()
        child.wait()
    deadline = time.monotonic() + 20
    while any(_alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not [pid for pid in pids if _alive(pid)]
    assert said.read_text() == ""


_DYING = """
import os, sys, time
from training.environments.lane_processes import Undisturbed
reads, writes = os.pipe()
make = Undisturbed(lambda: None)
if os.fork() == 0:
    os.close(writes)
    make()
    print("heard", file=sys.stderr, flush=True)
    os.read(reads, 1)
    print("not heard", file=sys.stderr, flush=True)
else:
    time.sleep(1)
    os.closerange(0, 1000)
    os.wait()
"""


def test_a_lane_says_nothing_between_its_parent_s_last_file_and_its_end():
    """A process that is killed closes its files, and is its children's parent until later."""
    command = [sys.executable, "-c", _DYING]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == "heard\n"


def _alive(pid):
    """Whether it runs; nobody may be there to reap an orphan."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
