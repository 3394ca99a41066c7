from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest
from gymnasium import spaces

import storage
from storage.description import LARGEST_METADATA, read_description, read_metadata
from storage.errors import CorruptStoreError, UnsupportedSpaceError
from tests.storage.zoo import SPACES, spec

SOURCE = Path("steps.zarr/zarr.json")


@pytest.fixture(scope="module")
def attributes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    made = storage.create(
        tmp_path_factory.mktemp("described") / "store",
        spec(SPACES["dict"], SPACES["vector_f8"], kwargs={"a": 1}),
        info={"x": ("f4", (2,))},
    )
    read: dict[str, Any] = read_metadata(made.path / "steps.zarr/zarr.json")["attributes"]
    return read


def changed(attributes: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    copied = copy.deepcopy(attributes)
    place: Any = copied
    *parts, last = [int(part) if part.isdigit() else part for part in path.split("/")]
    for part in parts:
        place = place[part]
    place[last] = value
    return copied


def box(**changes: Any) -> dict[str, Any]:
    described = {"type": "Box", "dtype": "float32", "shape": [2], "low": 0, "high": 1}
    return described | changes


HOSTILE_SPACES: dict[str, Any] = {
    "no object": [1],
    "unknown type": {"type": "os.system"},
    "no type": {},
    "an unhashable type": {"type": []},
    "an endless shape": box(shape=[2**40, 2**40]),
    "a shape of gigabytes": box(shape=[2**31]),
    "a negative shape": box(shape=[-1]),
    "an empty axis": box(shape=[0]),
    "a shape of text": box(shape=["2"]),
    "a fractional shape": box(shape=[2.0]),
    "a shape of booleans": box(shape=[True]),
    "40 axes": box(shape=[1] * 40),
    "objects": box(dtype="O"),
    "structures": box(dtype="f4,f4"),
    "texts": box(dtype="S10"),
    "no dtype": box(dtype=None),
    "a dtype of a list": box(dtype=[["a", "f4"]]),
    "low above high": box(low=2),
    "a NaN bound": box(low="nan"),
    "a bound of text": box(low="1e400x"),
    "a bound that is an object": box(high={"a": 1}),
    "too few bounds": box(low=[0]),
    "a bound beyond the dtype": box(dtype="uint8", high=256),
    "a bound of 400 digits": box(high=10**400),
    "no choices": {"type": "Discrete", "dtype": "int64", "n": 0, "start": 0},
    "negative choices": {"type": "Discrete", "dtype": "int64", "n": -3, "start": 0},
    "2**70 choices": {"type": "Discrete", "dtype": "int64", "n": 2**70, "start": 0},
    "choices beyond 64 bits": {"type": "Discrete", "dtype": "int64", "n": 9, "start": 2**63 - 2},
    "fractional choices": {"type": "Discrete", "dtype": "int64", "n": 2.5, "start": 0},
    "true choices": {"type": "Discrete", "dtype": "int64", "n": True, "start": 0},
    "ragged choices": {
        "type": "MultiDiscrete",
        "dtype": "int64",
        "nvec": [[1], [2, 3]],
        "start": 3,
    },
    "no nvec": {"type": "MultiDiscrete", "dtype": "int64", "nvec": [], "start": []},
    "binary of 2**60": {"type": "MultiBinary", "n": 2**60},
    "binary of a negative": {"type": "MultiBinary", "n": [2, -2]},
    "no parts": {"type": "Dict", "spaces": []},
    "parts of an object": {"type": "Dict", "spaces": {"a": box()}},
    "a key twice": {"type": "Dict", "spaces": [["a", box()], ["a", box()]]},
    "a numeric key": {"type": "Dict", "spaces": [[1, box()]]},
    "five thousand parts": {"type": "Tuple", "spaces": [box()] * 5000},
    "parts of gigabytes together": {"type": "Tuple", "spaces": [box(shape=[2**23])] * 100},
}
for key in (
    "..",
    "a/b",
    "a\\b",
    "nul\0",
    "",
    "/etc",
    "__x",
    "a\nb",
    "\x1b[2J",
    "\ud800",
    "k" * 300,
):
    HOSTILE_SPACES[f"the key {key!r}"] = {"type": "Dict", "spaces": [[key, box()]]}


@pytest.mark.parametrize("name", HOSTILE_SPACES)
@pytest.mark.parametrize("part", ["observation_space", "action_space"])
def test_spaces_that_no_store_has(attributes: dict[str, Any], name: str, part: str) -> None:
    hostile = changed(attributes, f"environment/{part}", HOSTILE_SPACES[name])
    with pytest.raises(
        CorruptStoreError, match=r"steps\.zarr/zarr\.json does not describe"
    ) as said:
        read_description(hostile, SOURCE)
    assert len(str(said.value)) < 1200


def test_spaces_nested_without_end(attributes: dict[str, Any]) -> None:
    nested: Any = box()
    for _ in range(800):
        nested = {"type": "Tuple", "spaces": [nested]}
    with pytest.raises(CorruptStoreError, match="nested more than 100 deep"):
        read_description(changed(attributes, "environment/observation_space", nested), SOURCE)


HOSTILE_FIELDS = [
    ("environment/id", None),
    ("environment/id", ""),
    ("environment/id", "Ant\x1b]0;title\x07"),
    ("environment/id", "x" * 5000),
    ("environment/kwargs", ["a"]),
    ("environment/wrappers", {"a": 1}),
    ("environment/max_episode_steps", -1),
    ("environment/max_episode_steps", 2**70),
    ("environment/max_episode_steps", "100"),
    ("environment/max_episode_steps", 1.5),
    ("schema/behaviour_family", ["gaussian"]),
    ("schema/behaviour_family", "gauss"),
    ("schema/frame_stack", 2**70),
    ("schema/frame_stack", "4"),
    ("schema/frame_stack", -4),
    ("schema/first_stack_padding", "mirror"),
    ("schema/life_loss", "yes"),
    ("schema/info", [["x", "O", []]]),
    ("schema/info", [["x", "f4,f4", []]]),
    ("schema/info", [["x", "float32", [2**40, 2**40]]]),
    ("schema/info", [["../x", "float32", []]]),
    ("schema/info", [["x", "float32", []], ["x", "float32", []]]),
    ("schema/info", [[["x"], "float32", []]]),
    ("schema/info", [["x", "float32", []]] * 3000),
    ("schema/info", 7),
    ("schema/columns", []),
    ("schema/columns", [["observation.arm.angle", "float32", [2, 3]]]),
    ("schema/columns/0/0", "../../evil"),
    ("schema/columns/0/0", "/evil"),
    ("schema/columns/0/1", "object"),
    ("schema/columns/0/2", [2**62, 4]),
    ("schema/columns/0/2", [-2, 3]),
    ("schema/columns/0", "reward"),
    ("schema", None),
    ("environment", []),
]


@pytest.mark.parametrize(("path", "value"), HOSTILE_FIELDS)
def test_fields_that_no_store_has(attributes: dict[str, Any], path: str, value: Any) -> None:
    with pytest.raises(CorruptStoreError, match=r"steps\.zarr/zarr\.json does not describe"):
        read_description(changed(attributes, path, value), SOURCE)


def test_the_unchanged_description_is_read(attributes: dict[str, Any]) -> None:
    described, schema = read_description(attributes, SOURCE)
    assert described.kwargs == {"a": 1}
    assert schema.columns[0].name == "observation.arm.angle"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"[" * 200_000, "RecursionError"),
        (b'{"a":' * 200_000, "RecursionError"),
        (b'{"a": NaN}', "NaN is no number"),
        (b"\xff\xfe", "UnicodeDecodeError"),
        (b"", "not JSON"),
        (b"9" * 10_000, "not JSON"),
    ],
)
def test_json_that_is_none(tmp_path: Path, text: bytes, said: str) -> None:
    path = tmp_path / "zarr.json"
    path.write_bytes(text)
    with pytest.raises(CorruptStoreError, match=said):
        read_metadata(path)


def test_metadata_of_hundreds_of_megabytes_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "zarr.json"
    path.touch()
    os.truncate(path, 400 * 2**20)
    with pytest.raises(CorruptStoreError, match=f"more than {LARGEST_METADATA:,} is not read"):
        read_metadata(path)


def test_metadata_that_is_a_pipe_or_a_link(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/etc/passwd")
    for name in ("pipe", "link"):
        with pytest.raises(CorruptStoreError, match=name):
            read_metadata(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        read_metadata(tmp_path / "none")


UNSTORABLE = {
    "choices that a row cannot hold": (spaces.Box(0, 1, (1,)), spaces.Discrete(2**40)),
    "choices whose number wraps": (spaces.Box(0, 1, (1,)), spaces.MultiDiscrete([2**62] * 4)),
    "too many columns": (spaces.Tuple([spaces.Discrete(2)] * 1100), spaces.Discrete(2)),
    "a long row": (spaces.MultiBinary(2**26), spaces.Discrete(2)),
}


@pytest.mark.parametrize("name", UNSTORABLE)
def test_what_could_not_be_opened_again_is_not_created(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnsupportedSpaceError):
        storage.create(tmp_path / "store", spec(*UNSTORABLE[name]))
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("name", SPACES)
def test_every_space_of_the_zoo_is_still_read(tmp_path: Path, name: str) -> None:
    made = storage.create(tmp_path / "store", spec(SPACES[name], SPACES[name]))
    text = json.dumps(read_metadata(made.path / "steps.zarr/zarr.json")["attributes"])
    described, schema = read_description(json.loads(text), SOURCE)
    assert (described, schema) == (made.env_spec, made.schema)
