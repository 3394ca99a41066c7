from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

import storage
from storage.errors import (
    ConfigError,
    SchemaMismatchError,
    WriterStateError,
)
from storage.layout import BehaviourKind, Ending
from tests.storage.zoo import F4, Tiny, check_tiny, f4_spec, play, spec, tiny_spec

BOX = spaces.Box(-2.0, 10.0, (2,), np.float32)
GOOD = {
    "action": np.array([0, 1], np.float32),
    "reward": 1.0,
    "observation": np.zeros(3),
    "terminated": False,
    "truncated": False,
}
STEP = {"action": 1, "reward": 1.0, "terminated": False, "truncated": False}


@pytest.fixture
def store(tmp_path: Path) -> storage.Store:
    return storage.create(
        tmp_path / "store", spec(spaces.Box(-np.inf, np.inf, (3,), np.float64), BOX)
    )


def rows(store: storage.Store, name: str) -> list:
    store.refresh()
    return store.columns[name][:].tolist()


# What is stored


def test_every_value_of_many_episodes_on_several_lanes(tmp_path: Path) -> None:
    store = storage.create(tmp_path / "store", tiny_spec())
    with store.writer(lanes=3, run="r", row_budget=40, publish_interval=0) as writer:
        records = [play(writer, lane, episode) for episode in range(20) for lane in range(3)]
    assert store.n_episodes == 60
    assert store.n_steps == sum(record.length for record in records)
    assert len(store.segments) > 6
    assert {info.run for info in store.segments} == {"r"}
    for record in records:
        check_tiny(store, record)
    for info in store.segments:
        ordinals = store.records(info.id)["ordinal"].tolist()
        assert ordinals == list(range(info.episodes))


def test_next_observation_of_the_newest_step_is_there_before_the_episode_ends(f4: F4) -> None:
    """stable-baselines3: the newest index of a half-full compact buffer."""
    opened = f4.writer.open_episode(0)
    assert opened is not None
    assert (opened.start, opened.steps, opened.seed, opened.lane_episode) == (12, 4, 300, 3)
    folder = f4.path / "steps.zarr" / "000000" / "observation"
    observations = np.fromfile(folder / "c.0.0", "<f8", offset=32768)
    assert observations[12:17].tolist() == [300, 301, 302, 303, 304]


def test_closing_row_holds_the_final_observation_only(f4: F4) -> None:
    assert rows(f4.store, "observation") == [
        [v] for v in [0, 1, 2, 3, 4, 5, 100, 101, 102, 103, 200, 201]
    ]
    assert rows(f4.store, "kind") == [1, 1, 1, 1, 1, 2, 1, 1, 1, 2, 1, 2]
    assert rows(f4.store, "reward") == [1, 1, 1, 1, 1, 0, 1, 1, 1, 0, 1, 0]
    assert rows(f4.store, "action") == [0, 1, 2, 3, 4, 0, 0, 1, 2, 0, 0, 0]
    assert np.isnan(f4.store.columns["behaviour"][5]).all()
    assert f4.store.columns["policy_update"][5] == -1


def test_truncation_is_never_stored_as_termination(f4: F4) -> None:
    """d3rlpy: last step forced terminal."""
    assert rows(f4.store, "terminated") == [False] * 4 + [True] + [False] * 5 + [True, False]
    assert rows(f4.store, "truncated") == [False] * 8 + [True] + [False] * 3


def test_closing_with_an_open_episode_truncates_it(f4: F4) -> None:
    """Minari: incomplete last episode."""
    f4.writer.close()
    last = f4.store.episode(-1)
    assert (last.record.ending, last.record.length) == (Ending.CUT, 4)
    assert last.observation[:, 0].tolist() == [300, 301, 302, 303, 304]
    assert last.truncated.tolist() == [False, False, False, True]
    assert not last.terminated.any()


def test_an_open_episode_is_not_glued_to_the_next_one(f4: F4) -> None:
    """stable-baselines3: episode lengths wrong after loading."""
    f4.writer.close()
    with f4.store.writer() as writer:
        writer.begin(0, np.array([400.0]))
        for t in range(2):
            writer.step(
                0,
                action=t,
                reward=1.0,
                observation=np.array([401.0 + t]),
                terminated=t == 1,
                truncated=False,
            )
    lengths = f4.store.episodes["length"].to_pylist()
    assert lengths == [5, 3, 1, 4, 2]


def test_the_action_of_a_row_led_to_the_next_observation(tmp_path: Path) -> None:
    """envlogger: recorded action shifted by one."""
    store = storage.create(
        tmp_path / "store", spec(spaces.Box(-9, 9, (1,), np.float32), spaces.Box(-9, 9, (1,)))
    )
    rng = np.random.default_rng(0)
    with store.writer() as writer:
        for length in (1, 2, 7):
            writer.begin(0, np.zeros(1, np.float32))
            for t in range(length):
                action = rng.uniform(-9, 9, 1).astype(np.float32)
                writer.step(
                    0,
                    action=action,
                    reward=10.0 * t,
                    observation=action,
                    terminated=t == length - 1,
                    truncated=False,
                )
    for episode in store.iterate_episodes():
        np.testing.assert_array_equal(episode.observation[1:], episode.action)
        assert episode.reward.tolist() == [10.0 * t for t in range(len(episode))]


def test_actions_are_stored_as_the_environment_received_them(store: storage.Store) -> None:
    """stable-baselines: warm-up actions in other units than the policy's."""
    rng = np.random.default_rng(0)
    actions = [BOX.sample() for _ in range(50)]
    raws = rng.normal(0, 3, (50, 2)).astype(np.float32)
    actions += [np.clip(4 + 6 * raw, -2, 10) for raw in raws]
    with store.writer() as writer:
        writer.begin(0, np.zeros(3))
        for index, action in enumerate(actions):
            raw = raws[index - 50] if index >= 50 else None
            writer.step(0, **(GOOD | {"action": action}), raw_action=raw)
        writer.end(0)
    stored = store.columns["action"][:-1]
    np.testing.assert_array_equal(stored, actions)
    assert ((stored >= -2) & (stored <= 10)).all()
    assert np.isnan(store.columns["raw_action"][:50]).all()
    np.testing.assert_array_equal(store.columns["raw_action"][50:-1], raws)


def test_both_flags_count_as_termination(store: storage.Store) -> None:
    with store.writer() as writer:
        writer.begin(0, np.zeros(3))
        record = writer.step(0, **(GOOD | {"terminated": True, "truncated": True}))
    assert record.ending is Ending.TERMINATED
    assert rows(store, "terminated") == [True, False]
    assert rows(store, "truncated") == [False, False]


def test_behaviour_kinds(store: storage.Store) -> None:
    with store.writer() as writer:
        writer.begin(0, np.zeros(3))
        writer.step(0, **GOOD, behaviour=[0, 0, 1, 0.1], raw_action=[0.5, 0.25])
        writer.step(0, **GOOD, behaviour=np.ones(4, np.float32), behaviour_kind=4)
        writer.step(0, **GOOD, behaviour_kind=BehaviourKind.UNIFORM)
        writer.step(0, **GOOD, policy_update=7)
        with pytest.raises(SchemaMismatchError, match="gaussian on lane 0 without its parameters"):
            writer.step(0, **GOOD, behaviour_kind=1)
        with pytest.raises(SchemaMismatchError, match="4 nominal_gaussian"):
            writer.step(0, **GOOD, behaviour_kind=9)
        with pytest.raises(SchemaMismatchError, match=r"behaviour: got shape \(3,\)"):
            writer.step(0, **GOOD, behaviour=[1, 2, 3])
    assert rows(store, "behaviour_kind") == [1, 4, 3, 0, 0]
    assert rows(store, "policy_update") == [-1, -1, -1, 7, -1]
    np.testing.assert_array_equal(
        store.columns["behaviour"][0], np.array([0, 0, 1, 0.1], np.float32)
    )
    assert np.isnan(store.columns["behaviour"][2:]).all()


def test_policy_numbers_without_a_column_are_refused(tmp_path: Path) -> None:
    store = storage.create(tmp_path / "store", f4_spec(), behaviour="unknown")
    step = {"action": 1, "reward": 0.0, "observation": [1.0], "terminated": 0, "truncated": 0}
    with store.writer() as writer:
        writer.begin(0, np.zeros(1))
        with pytest.raises(SchemaMismatchError, match=r"raw_action given on lane 0.*Discrete"):
            writer.step(0, **step, raw_action=[1.0])
        with pytest.raises(SchemaMismatchError, match=r"behaviour given .* 'unknown'"):
            writer.step(0, **step, behaviour=[1.0])
        writer.step(0, **step)


def test_info_that_comes_and_goes_has_a_validity_mask(tmp_path: Path) -> None:
    """Minari: info keys that come and go."""
    store = storage.create(tmp_path / "store", f4_spec(), info={"x": "f8", "p": ("f4", (2,))})
    step = {"action": 1, "reward": 0.0, "observation": [1.0], "terminated": 0, "truncated": 0}
    with store.writer() as writer:
        writer.begin(0, np.zeros(1), info={})
        writer.step(0, **step, info={"x": 1})
        writer.step(0, **step, info=None)
        writer.step(0, **step, info={"x": None, "p": [1, 2]})
        writer.step(0, **(step | {"terminated": 1}), info={"x": 4, "episode": {"r": 1}})
    assert rows(store, "info.x") == [0, 1, 0, 0, 4]
    assert rows(store, "info.x.valid") == [False, True, False, False, True]
    assert rows(store, "info.p") == [[0, 0], [0, 0], [0, 0], [1, 2], [0, 0]]
    assert rows(store, "info.p.valid") == [False, False, False, True, False]


def test_life_loss_column(tmp_path: Path) -> None:
    store = storage.create(tmp_path / "store", f4_spec(), life_loss=True)
    step = {"action": 1, "reward": 0.0, "observation": [1.0], "terminated": 0, "truncated": 0}
    with store.writer() as writer:
        writer.begin(0, np.zeros(1))
        writer.step(0, **step)
        writer.step(0, **step, life_lost=True)
    assert rows(store, "life_lost") == [False, True, False]


def test_seed_zero_is_a_seed(tmp_path: Path) -> None:
    """Minari: seed 0 recorded as "no seed"."""
    store = storage.create(tmp_path / "store", tiny_spec())
    with store.writer() as writer:
        for seed in (0, None, 2**64 - 1):
            writer.begin(0, np.zeros(3), seed=seed)
            writer.step(0, **Tiny(0, 0).step(0))
            writer.end(0)
        with pytest.raises(SchemaMismatchError, match="seed -1 of lane 0"):
            writer.begin(0, np.zeros(3), seed=-1)
    assert store.episodes["seed"].to_pylist() == [0, None, 2**64 - 1]


# Calls out of order


def test_calls_out_of_order(store: storage.Store) -> None:
    writer = store.writer(lanes=2)
    with pytest.raises(WriterStateError, match="step on lane 1, which has no open episode"):
        writer.step(1, **GOOD)
    for lane in (-1, 2):
        with pytest.raises(WriterStateError, match=f"lane {lane} does not exist; .* lanes 0 to 1"):
            writer.step(lane, **GOOD)
        with pytest.raises(WriterStateError):
            writer.begin(lane, np.zeros(3))
    writer.begin(0, np.zeros(3))
    writer.step(0, **GOOD)
    with pytest.raises(WriterStateError, match="episode 0 is still open after 1 steps"):
        writer.begin(0, np.zeros(3))
    assert writer.end(1) is None
    writer.close()
    writer.close()
    with pytest.raises(WriterStateError, match="closed"):
        writer.begin(0, np.zeros(3))
    with pytest.raises(WriterStateError):
        writer.step(0, **GOOD)


@pytest.mark.parametrize(
    "settings", [{"lanes": 0}, {"publish_interval": -1}, {"nonfinite": "skip"}, {"capacity": 1}]
)
def test_impossible_settings(store: storage.Store, settings: dict) -> None:
    with pytest.raises(ConfigError):
        store.writer(**settings)


def test_abandoned_episodes_leave_no_trace(store: storage.Store) -> None:
    with store.writer() as writer:
        writer.begin(0, np.zeros(3))
        writer.step(0, **GOOD)
        writer.abandon(0)
        assert writer.open_episode(0) is None
        writer.begin(0, np.ones(3))
        writer.step(0, **(GOOD | {"reward": 2.0}))
        writer.abandon(0)
        writer.abandon(0)
    assert storage.open(store.path).n_rows == 0
    assert storage.open(store.path, mode="r+").writer() is not None
    store.refresh()
    assert store.n_episodes == 0


def test_an_episode_without_steps_is_no_episode(store: storage.Store) -> None:
    with store.writer() as writer:
        writer.begin(0, np.zeros(3))
        assert writer.end(0) is None
        writer.begin(0, np.ones(3))
    store.refresh()
    assert store.n_rows == 0


def test_an_exception_keeps_what_was_committed_and_the_open_steps(store: storage.Store) -> None:
    """LeRobot: an exception while recording breaks the whole dataset."""

    def record() -> None:
        with store.writer() as writer:
            for _ in range(5):
                writer.begin(0, np.zeros(3))
                writer.step(0, **(GOOD | {"terminated": True}))
            writer.begin(0, np.zeros(3))
            for _ in range(3):
                writer.step(0, **GOOD)
            raise RuntimeError("camera unplugged")

    with pytest.raises(RuntimeError, match="camera"):
        record()
    lengths = storage.open(store.path).episodes["length"].to_pylist()
    assert lengths == [1] * 5 + [3]
