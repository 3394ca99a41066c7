from __future__ import annotations

import json

import numpy as np
import pytest
from gymnasium import Space, spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.errors import SchemaMismatchError, UnsupportedSpaceError
from storage.spaces import (
    action_bounds,
    flatten_space,
    leaf_values,
    nest,
    probabilities,
    space_from_json,
    space_to_json,
)
from tests.storage.zoo import SPACES


@pytest.mark.parametrize("name", SPACES)
def test_spaces_survive_json(name: str) -> None:
    space = SPACES[name]
    again = space_from_json(json.loads(json.dumps(space_to_json(space), allow_nan=False)))
    assert again == space
    leaves = flatten_space(space, "observation"), flatten_space(again, "observation")
    for ours, theirs in zip(*leaves, strict=True):
        assert (ours.name, ours.dtype, ours.shape) == (theirs.name, theirs.dtype, theirs.shape)


@st.composite
def boxes(draw: st.DrawFn) -> spaces.Box:
    dtype = np.dtype(draw(st.sampled_from(["f2", "f4", "f8", "i1", "u1", "i4", "u4", "i8"])))
    shape = tuple(draw(st.lists(st.integers(1, 3), max_size=3)))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    low = rng.integers(0, 50, shape).astype(dtype)
    high = (low + rng.integers(1, 50, shape)).astype(dtype)
    if dtype.kind == "f" and draw(st.booleans()):
        low = np.full(shape, -np.inf, dtype)
    return spaces.Box(low, high, shape, dtype.type)


def discretes() -> st.SearchStrategy[Space]:
    ints = st.integers(1, 9)
    return st.one_of(
        st.builds(lambda n, s: spaces.Discrete(n, start=s), ints, st.integers(-9, 9)),
        st.builds(spaces.MultiDiscrete, st.lists(ints, min_size=1, max_size=4)),
        st.builds(spaces.MultiBinary, ints),
    )


def nested() -> st.SearchStrategy[Space]:
    keys = st.text("abcxyz_ -", min_size=1, max_size=5).filter(lambda k: not k.startswith("__"))
    return st.recursive(
        st.one_of(boxes(), discretes()),
        lambda inner: st.one_of(
            st.lists(inner, min_size=1, max_size=3).map(spaces.Tuple),
            st.dictionaries(keys, inner, min_size=1, max_size=3).map(spaces.Dict),
        ),
        max_leaves=5,
    )


def equal(a: object, b: object) -> bool:
    if isinstance(a, dict):
        return list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    return bool(np.array_equal(a, b))


@settings(max_examples=60, deadline=None)
@given(nested(), st.integers(0, 100))
def test_any_space_and_its_samples_survive(space: Space, seed: int) -> None:
    assert space_from_json(json.loads(json.dumps(space_to_json(space)))) == space
    space.seed(seed)
    sample = space.sample()
    leaves = flatten_space(space, "observation")
    assert len({leaf.name for leaf in leaves}) == len(leaves)
    values = {
        leaf.name: np.asarray(value, leaf.dtype).reshape(leaf.shape)
        for leaf, value in zip(leaves, leaf_values(sample, leaves), strict=True)
    }
    assert equal(nest(space, "observation", values), sample)


def test_nested_names_have_dots() -> None:
    names = [leaf.name for leaf in flatten_space(SPACES["dict"], "observation")]
    assert names == ["observation.arm.angle", "observation.arm.on", "observation.camera"]
    names = [leaf.name for leaf in flatten_space(SPACES["tuple"], "action")]
    assert names == ["action.0", "action.1.x"]


@pytest.mark.parametrize(
    ("space", "says"),
    [
        (spaces.Text(5), "Text"),
        (spaces.Sequence(spaces.Discrete(2)), "Sequence"),
        (spaces.Graph(spaces.Discrete(2), None), "Graph"),
        (spaces.OneOf([spaces.Discrete(2), spaces.Discrete(3)]), "OneOf"),
        (spaces.Dict({}), "empty"),
        (spaces.Tuple(()), "empty"),
        (spaces.Box(0, 1, (0,)), r"shape \(0,\)"),
        (spaces.Box(0, 1, (2,), np.longdouble), "float128"),
        (spaces.Dict({"a/b": spaces.Discrete(2)}), "'a/b'"),
        (spaces.Dict({"a.b": spaces.Discrete(2)}), "'a.b'"),
    ],
)
def test_spaces_without_columns_are_refused_with_their_place(space: Space, says: str) -> None:
    outer = spaces.Dict({"fine": spaces.Discrete(2), "bad": spaces.Tuple((space,))})
    with pytest.raises(UnsupportedSpaceError, match=says) as caught:
        flatten_space(outer, "observation")
    assert "observation.bad.0" in str(caught.value)
    assert "Box, Discrete" in str(caught.value)


def test_big_endian_boxes_become_little_endian_columns() -> None:
    (leaf,) = flatten_space(spaces.Box(0, 1, (2,), np.dtype(">f4")), "observation")
    assert leaf.dtype is np.dtype("f4")


def test_missing_parts_are_named() -> None:
    leaves = flatten_space(SPACES["dict"], "observation")
    with pytest.raises(SchemaMismatchError, match=r"observation\.arm\.angle.*no part 'arm'"):
        leaf_values({"camera": 0}, leaves)


def test_action_counts_come_from_the_space() -> None:
    counts = {
        "discrete": 5,
        "discrete_start": 4,
        "multi_discrete": 10,
        "multi_binary": 8,
    }
    for name, count in counts.items():
        (leaf,) = flatten_space(SPACES[name], "action")
        assert probabilities(leaf) == count


def test_bounds_of_actions() -> None:
    (leaf,) = flatten_space(SPACES["discrete_start"], "action")
    assert [bound.tolist() for bound in action_bounds(leaf)] == [-3, 0]
    (leaf,) = flatten_space(SPACES["multi_discrete_2d"], "action")
    assert [bound.tolist() for bound in action_bounds(leaf)] == [
        [[1, 1], [0, -2]],
        [[2, 3], [3, 2]],
    ]
