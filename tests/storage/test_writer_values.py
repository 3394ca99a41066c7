"""A step stores what it was given, or says that it cannot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium import spaces

import storage
from storage.errors import SchemaMismatchError
from storage.layout import BehaviourKind
from tests.storage.zoo import spec

GOOD = {
    "action": np.array([0.5, 1], np.float32),
    "reward": 1.0,
    "observation": np.zeros(3),
    "terminated": False,
    "truncated": False,
    "raw_action": np.array([0.5, 1], np.float32),
    "behaviour": np.array([0, 0, 1, 1], np.float32),
    "behaviour_kind": 1,
    "policy_update": 3,
}
PLACE = "^lane 0, episode 0, step 1: "
PAIR = np.array([True, False])


@pytest.fixture
def store(tmp_path: Path) -> storage.Store:
    observation = spaces.Box(-np.inf, np.inf, (3,), np.float64)
    action = spaces.Box(-2.0, 10.0, (2,), np.float32)
    return storage.create(tmp_path / "store", spec(observation, action), behaviour="gaussian")


def refuse(store: storage.Store, change: dict, says: str) -> None:
    """Expect a step's refusal, and that the next step takes its place."""
    with store.writer() as writer:
        writer.begin(0, np.zeros(3))
        writer.step(0, **GOOD)
        with pytest.raises(SchemaMismatchError, match=PLACE + says):
            writer.step(0, **(GOOD | change))
        assert writer.open_episode(0).steps == 1
        writer.step(0, **(GOOD | {"reward": 5.0}))
        record = writer.end(0)
    assert (record.length, record.episode_return) == (2, 6.0)
    store.refresh()
    assert store.columns["terminated"][:].tolist() == [False] * 3
    assert store.columns["policy_update"][:].tolist() == [3, 3, -1]


@pytest.mark.parametrize("name", ["terminated", "truncated", "life_lost"])
@pytest.mark.parametrize("value", ["False", float("nan"), 0.5, None, 2, PAIR, np.array([0, 1])])
def test_flags_are_true_or_false(store: storage.Store, name: str, value: object) -> None:
    refuse(store, {name: value}, f"{name}: .* is no flag; give True or False")


@pytest.mark.parametrize("name", ["policy_update", "behaviour_kind"])
@pytest.mark.parametrize(
    "value",
    [
        *(3.7, np.float64(1.9), "3", np.nan, np.inf, None, np.array([3]), PAIR),
        *(2**63, -(2**63) - 1, np.uint64(2**63), 2**70),
    ],
)
def test_integers_are_whole_and_fit(store: storage.Store, name: str, value: object) -> None:
    refuse(store, {name: value}, f"{name}: .* (is no integer|is too large); give a whole number")


@pytest.mark.parametrize(
    "value",
    [
        *(1j, np.complex128(1 + 2j), "1.5", b"1.5", np.array([1.0, 2.0]), np.ma.masked),
        *(2**53 + 1, np.int64(2**53 + 1), 10**400, -(10**400)),
        torch.tensor(1.5, requires_grad=True),
    ],
)
def test_rewards_are_real_numbers_of_a_float64(store: storage.Store, value: object) -> None:
    refuse(store, {"reward": value}, r"reward: .* (is no number; give|no equal float64; scale)")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"raw_action": np.array([1 + 1j, 0])}, "raw_action: .* is no array of numbers .*complex"),
        ({"behaviour": np.array([1j] * 4)}, "behaviour: .* is no array of numbers .*complex128"),
        ({"raw_action": ["0.5", "0.1"]}, "raw_action: .* is no array of numbers .*give 2 real"),
        ({"behaviour": ["1"] * 4}, "behaviour: .* is no array of numbers .*give 4 real"),
        ({"raw_action": [None, None]}, "raw_action: .* is no array of numbers"),
        ({"observation": np.ma.masked_array([7.0, 8, 9], [0, 1, 0])}, "observation: a masked arr"),
        ({"action": np.ma.masked_array(GOOD["action"], [1, 0])}, "action: a masked array"),
        ({"raw_action": np.ma.masked_array(GOOD["action"], [1, 0])}, "raw_action: a masked array"),
        ({"observation": np.array([2**53 + 1] * 3)}, "observation: int64 values cannot be stored"),
        ({"observation": np.array([2**64 - 1] * 3, np.uint64)}, "observation: uint64 values"),
        ({"observation": torch.ones(3, requires_grad=True)}, "observation: .* is no array .*grad"),
    ],
)
def test_arrays_are_stored_unchanged(store: storage.Store, change: dict, says: str) -> None:
    refuse(store, change, says)


@pytest.mark.parametrize("kind", [0, BehaviourKind.GAUSSIAN, BehaviourKind.NOMINAL_GAUSSIAN])
@pytest.mark.parametrize("stdev", [0.0, -0.5, 1e-60])
@pytest.mark.parametrize("as_list", [False, True])
def test_gaussians_have_a_width(
    store: storage.Store, kind: int, stdev: float, as_list: bool
) -> None:
    behaviour = [-3.0, 0.0, 1.0, stdev]
    given = behaviour if as_list else np.array(behaviour, np.float32)
    says = f"behaviour: the standard deviation of number 1 is {float(np.float32(stdev))} as"
    refuse(store, {"behaviour": given, "behaviour_kind": kind}, says)


@pytest.mark.parametrize("kind", [BehaviourKind.UNIFORM, 3.0])
def test_a_uniform_draw_has_no_parameters(store: storage.Store, kind: float) -> None:
    refuse(store, {"behaviour_kind": kind}, "behaviour: uniform draws have no parameters")


def test_a_first_observation_that_is_no_array_is_placed(store: storage.Store) -> None:
    with (
        store.writer() as writer,
        pytest.raises(SchemaMismatchError, match=r"^first observation of lane 0, episode 0: obs"),
    ):
        writer.begin(0, torch.ones(3, requires_grad=True))


def test_scalars_of_other_types_are_taken(store: storage.Store) -> None:
    changes = (
        {
            "reward": 2**53,
            "policy_update": np.int64(-4),
            "behaviour_kind": BehaviourKind.NOMINAL_GAUSSIAN,
        },
        {"reward": np.float32(0.5), "terminated": np.False_, "truncated": np.array([False])},
        {"reward": torch.tensor(1.5), "behaviour_kind": np.uint8(0), "terminated": 0},
        {"reward": True, "policy_update": True, "truncated": 1},
    )
    with store.writer() as writer:
        writer.begin(0, np.zeros(3))
        records = [writer.step(0, **(GOOD | change)) for change in changes]
    assert [record is None for record in records] == [True, True, True, False]
    store.refresh()
    stored = {name: column[:4].tolist() for name, column in store.columns.items()}
    assert stored["reward"] == [2**53, 0.5, 1.5, 1]
    assert stored["policy_update"] == [-4, 3, 3, 1]
    assert stored["behaviour_kind"] == [4, 1, 1, 1]
    assert stored["terminated"] == [False] * 4
    assert stored["truncated"] == [False, False, False, True]
