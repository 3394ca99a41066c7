from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from gymnasium.spaces import Box

import storage
from storage.errors import (
    ConfigError,
    EmptyViewError,
    EnvironmentNotFoundError,
    SchemaMismatchError,
    UnsupportedSpaceError,
)
from storage.root_metadata import attributes_checksum
from tests.training.tiny import ROUND, WARMUP, tiny_config
from training.config import EnvironmentConfig, EvaluationConfig, ReplayConfig, WrapperConfig
from training.environments.environment import describe_environment, make_environment
from training.preflight import check_run, check_soon, stored_environment


def fill(path: Path, environment: EnvironmentConfig, steps: int = 40) -> Path:
    env = make_environment(environment)
    spec = describe_environment(environment)
    with storage.create(path, spec) as store, store.writer() as writer:
        writer.begin(0, env.reset(seed=0)[0])
        env.action_space.seed(0)
        for _ in range(steps):
            action = env.action_space.sample()
            observation, reward, *_ = env.step(action)
            writer.step(
                0,
                action=action,
                raw_action=action,
                behaviour=[0.0, 1.0],
                reward=float(reward),
                observation=observation,
                terminated=False,
                truncated=False,
            )
    return path


def offline(store: Path, environment: str | EnvironmentConfig, **changes):
    config = tiny_config(**changes)
    if isinstance(environment, str):
        environment = EnvironmentConfig(environment)
    replay = replace(config.replay, store=str(store))
    return replace(config, environment=environment, replay=replay)


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        ({"steps": WARMUP}, ConfigError, "loop.warmup is 100 of loop.steps 100"),
        ({"environment": "CartPole-v1"}, UnsupportedSpaceError, "Discrete"),
        ({"environment": "Hoper-v5"}, EnvironmentNotFoundError, "Hopper-v5"),
    ],
)
def test_what_cannot_run_is_refused(config, error, message):
    with pytest.raises(error, match=message):
        check_run(tiny_config(**config))


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        ({"exclude_current_positions_from_observation": False}, SchemaMismatchError, r"\(18,\)"),
        ({"wind": 1}, ConfigError, "with evaluation.environment_kwargs {'wind': 1}: .*TypeError"),
    ],
)
def test_evaluations_that_cannot_be_played_are_refused(kwargs, error, message):
    config = tiny_config(environment="HalfCheetah-v5", evaluate_every=ROUND)
    evaluation = replace(config.evaluation, environment_kwargs=kwargs)
    with pytest.raises(error, match=message):
        check_run(replace(config, evaluation=evaluation))
    check_run(replace(config, evaluation=replace(evaluation, episodes=0)))


def test_a_batch_that_never_fills_is_refused():
    config = tiny_config()
    agent = replace(config.agent, batch_size=128)
    loop = replace(config.loop, steps=128)
    with pytest.raises(ConfigError, match=r"agent\.batch_size is 128 of loop\.steps 128"):
        check_run(replace(config, agent=agent, loop=loop))


def test_a_window_that_is_smaller_than_a_batch_is_refused():
    with pytest.raises(
        ConfigError, match=r"replay\.window is 8, smaller than agent\.batch_size 16"
    ):
        check_run(tiny_config(window=8))


@pytest.mark.parametrize(
    ("environment", "error", "message"),
    [
        ("CartPole-v1", UnsupportedSpaceError, "Discrete"),
        ("Atari/Pog", EnvironmentNotFoundError, "Atari/Pong"),
        ("Hoper-v5", EnvironmentNotFoundError, "Hopper-v5"),
    ],
)
def test_what_cannot_work_at_all_is_told_before_budgets_and_the_machine(
    monkeypatch, environment, error, message
):
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    config = tiny_config(environment=environment, steps=WARMUP, window=8, scheme="no.Scheme")
    config = replace(config, loop=replace(config.loop, threads=5))
    for check in (check_run, check_soon):
        with pytest.raises(error, match=message):
            check(config)


def test_spaces_are_told_before_a_store_that_is_too_small(tmp_path):
    spec = describe_environment(EnvironmentConfig("CartPole-v1"))
    with storage.create(tmp_path / "store", spec):
        pass
    with pytest.raises(UnsupportedSpaceError, match="Discrete"):
        check_run(offline(tmp_path / "store", "CartPole-v1"))


def test_an_unknown_scheme_and_overlay_are_refused():
    with pytest.raises(ConfigError, match=r"replay\.scheme is 'x'; .*uniform, per, pser"):
        ReplayConfig(scheme="x")
    with pytest.raises(ConfigError, match=r"replay\.overlay is 'a/b'"):
        ReplayConfig(overlay="a/b")


def test_the_budget_is_refused_before_torch_is_loaded():
    script = (
        "import sys\n"
        "from pipeline.cli import main\n"
        "code = main(['train', '--environment.id=Hopper-v5', '--loop.steps=5'])\n"
        "print(code, [name in sys.modules for name in ('torch', 'lightning')])\n"
    )
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", script]
    shown = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines() == ["2 [False, False]"]
    assert "loop.warmup is 10,000 of loop.steps 5" in shown.stderr


def test_a_store_must_be_of_the_environment_that_settings_name(tmp_path):
    store = fill(tmp_path / "store", EnvironmentConfig("Pendulum-v1"))
    checked = check_run(offline(store, "Pendulum-v1"))
    assert (checked.spec.id, checked.config.environment.id) == ("Pendulum-v1", "Pendulum-v1")
    with pytest.raises(SchemaMismatchError, match=r"Pendulum-v1 with observation_space .*Hopper"):
        check_run(offline(store, "Hopper-v5"))
    agent = replace(tiny_config().agent, batch_size=64)
    with pytest.raises(EmptyViewError, match="holds 40 steps, fewer than a batch of 64"):
        check_run(offline(store, "Pendulum-v1", agent=agent))


def test_another_environment_of_the_same_spaces_is_refused(tmp_path):
    same = {"observation_space": Box(-1, 1, (3,)), "action_space": Box(-1, 1, (1,))}
    with storage.create(tmp_path / "s", storage.EnvironmentSpec("Reacher9-v0", **same)):
        pass
    drift = describe_environment(EnvironmentConfig("tests.training.zoo.Drift"))
    for identifier, passes in [("Drift", True), ("Other", False)]:
        path = tmp_path / identifier
        with storage.create(path, replace(drift, id=identifier)) as store, store.writer():
            pass
        expected = "holds 0 steps" if passes else "holds steps of Other, but environment.id is"
        with pytest.raises((EmptyViewError, ConfigError), match=expected):
            check_run(offline(path, "tests.training.zoo.Drift"))


def test_settings_say_the_environment_that_was_used(tmp_path):
    made = EnvironmentConfig(
        "Pendulum-v1", {"g": 3.5}, [WrapperConfig("TimeLimit", {"max_episode_steps": 50})]
    )
    store = fill(tmp_path / "store", made)
    assert stored_environment(store) == made
    assert check_run(offline(store, "Pendulum-v1")).config.environment == made
    own = EnvironmentConfig("Pendulum-v1", {"g": 9.0})
    assert check_run(offline(store, own)).config.environment == own


def test_a_store_whose_environment_is_not_installed_can_be_learnt_from(tmp_path):
    spec = describe_environment(EnvironmentConfig("Pendulum-v1"))
    path = fill(tmp_path / "store", EnvironmentConfig("Pendulum-v1"))
    metadata = path / "steps.zarr" / "zarr.json"
    document = json.loads(metadata.read_text())
    document["attributes"]["environment"]["id"] = "Robot-v0"
    document["attributes"]["checksum"] = attributes_checksum(document["attributes"])
    metadata.write_text(json.dumps(document))
    config = offline(path, "Robot-v0")
    assert check_run(config).spec == replace(spec, id="Robot-v0")
    with pytest.raises(EnvironmentNotFoundError, match="Robot-v0"):
        check_run(replace(config, evaluation=EvaluationConfig(100, 1)))


def test_more_threads_than_cores_are_refused(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    config = tiny_config()
    check_run(replace(config, loop=replace(config.loop, threads=4)))
    with pytest.raises(ConfigError, match=r"loop\.threads is 5, but this machine has 4 cores"):
        check_run(replace(config, loop=replace(config.loop, threads=5)))
