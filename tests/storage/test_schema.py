from __future__ import annotations

import json

import numpy as np
import pytest
from gymnasium import spaces

from storage.errors import ConfigError, CorruptStoreError
from storage.schema import Schema, make_schema
from tests.storage.zoo import SPACES, cheetah_spec


def test_columns_of_a_continuous_task() -> None:
    spec = cheetah_spec()
    schema = make_schema(spec.observation_space, spec.action_space, life_loss=True)
    assert [(c.name, c.dtype.name, c.shape) for c in schema.columns] == [
        ("observation", "float64", (17,)),
        ("action", "float32", (6,)),
        ("raw_action", "float32", (6,)),
        ("reward", "float64", ()),
        ("terminated", "bool", ()),
        ("truncated", "bool", ()),
        ("kind", "uint8", ()),
        ("behaviour", "float32", (12,)),
        ("behaviour_kind", "uint8", ()),
        ("policy_update", "int64", ()),
        ("life_lost", "bool", ()),
    ]
    assert schema.behaviour_family == "gaussian"
    assert schema.row_bytes == 136 + 24 + 24 + 8 + 1 + 1 + 1 + 48 + 1 + 8 + 1


def test_discrete_and_mixed_actions() -> None:
    schema = make_schema(SPACES["image"], SPACES["multi_discrete"])
    names = [column.name for column in schema.columns]
    assert "raw_action" not in names
    assert (schema.behaviour_family, schema.behaviour_size) == ("categorical", 10)
    mixed = spaces.Tuple((SPACES["discrete"], SPACES["half"]))
    schema = make_schema(SPACES["image"], mixed)
    assert (schema.behaviour_family, schema.behaviour_size) == ("unknown", 0)
    assert "behaviour" not in [column.name for column in schema.columns]
    assert "behaviour_kind" in [column.name for column in schema.columns]


def test_schema_survives_json() -> None:
    schema = make_schema(
        SPACES["stacks"],
        SPACES["half"],
        info={"x": "f8", "position": ("f4", (3,))},
        frame_stack=4,
        first_stack_padding="zero",
        life_loss=True,
    )
    described = json.loads(json.dumps(schema.to_json()))
    assert Schema.from_json(described, SPACES["stacks"], SPACES["half"]) == schema
    assert [c.name for c in schema.columns][-4:] == [
        "info.x",
        "info.x.valid",
        "info.position",
        "info.position.valid",
    ]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"behaviour": "gauss"}, "choose one of gaussian, categorical, unknown"),
        ({"behaviour": "categorical"}, "whose policies are gaussian"),
        ({"info": {"a.b": "f8"}}, "'a.b'"),
        ({"info": {"x": "O"}}, "dtype object"),
        ({"info": {"x": ("f4", (0,))}}, r"shape \(0,\)"),
        ({"frame_stack": 0}, "frame_stack=0"),
        ({"first_stack_padding": "edge"}, "first_stack_padding='edge'"),
        ({"first_stack_padding": "zero"}, "without frame_stack"),
        ({"frame_stack": 3}, "without first_stack_padding"),
        ({"frame_stack": 4, "first_stack_padding": "zero"}, r"'observation' has shape \(3,\)"),
    ],
)
def test_impossible_settings_are_named(settings: dict, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make_schema(SPACES["vector_f8"], SPACES["half"], **settings)


def test_rows_hold_one_frame_of_a_stack() -> None:
    schema = make_schema(
        SPACES["stacks"], SPACES["discrete"], frame_stack=4, first_stack_padding="zero"
    )
    assert [leaf.shape for leaf in schema.observation] == [(4, 6, 5), (4,)]
    assert [(c.name, c.shape) for c in schema.columns[:2]] == [
        ("observation.camera", (6, 5)),
        ("observation.depth", ()),
    ]
    whole = make_schema(SPACES["stacks"], SPACES["discrete"])
    assert whole.row_bytes - schema.row_bytes == 3 * (6 * 5 + 4)


def test_a_part_that_is_not_stacked_is_named() -> None:
    """Positions beside stacked images: they would be cut to their last number."""
    mixed = spaces.Dict({"camera": SPACES["stacks"]["camera"], "speed": SPACES["vector_f8"]})
    for space in (mixed, spaces.Dict({**mixed.spaces, "speed": SPACES["discrete"]})):
        with pytest.raises(ConfigError, match=r"'observation\.speed' has shape \(3?,?\)"):
            make_schema(space, SPACES["half"], frame_stack=4, first_stack_padding="zero")


def test_columns_that_do_not_follow_from_the_settings_are_corruption() -> None:
    """Rows of whole stacks would be read as four times as many frames."""
    schema = make_schema(
        SPACES["stacks"], SPACES["half"], frame_stack=4, first_stack_padding="zero"
    )
    described = schema.to_json()
    for columns in (
        make_schema(SPACES["stacks"], SPACES["half"]).to_json()["columns"],
        described["columns"][:-1],
    ):
        with pytest.raises(CorruptStoreError, match="its spaces and settings make it"):
            Schema.from_json(described | {"columns": columns}, SPACES["stacks"], SPACES["half"])


def test_an_unknown_column_lists_those_there_are() -> None:
    schema = make_schema(SPACES["vector_f8"], SPACES["discrete"])
    with pytest.raises(KeyError, match=r"rewards.*observation, action, reward"):
        schema.column("rewards")
    assert schema.column("action").dtype == np.int64
