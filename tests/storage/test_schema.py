from __future__ import annotations

import json

import numpy as np
import pytest
from gymnasium import spaces

from storage.errors import ConfigError
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
        SPACES["dict"],
        SPACES["half"],
        info={"x": "f8", "position": ("f4", (3,))},
        frame_stack=4,
        first_stack_padding="zero",
        life_loss=True,
    )
    described = json.loads(json.dumps(schema.to_json()))
    assert Schema.from_json(described, SPACES["dict"], SPACES["half"]) == schema
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
    ],
)
def test_impossible_settings_are_named(settings: dict, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make_schema(SPACES["vector_f8"], SPACES["half"], **settings)


def test_an_unknown_column_lists_those_there_are() -> None:
    schema = make_schema(SPACES["vector_f8"], SPACES["discrete"])
    with pytest.raises(KeyError, match=r"rewards.*observation, action, reward"):
        schema.column("rewards")
    assert schema.column("action").dtype == np.int64
