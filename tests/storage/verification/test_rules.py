"""Values that no writer stores, under checksums that are right: a forger's, or a fault of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import storage
from storage.layout import BehaviourKind, StorePaths
from storage.verification.behaviour_rules import behaviour_rules
from storage.verification.blocks import Block
from storage.verification.raw_log import read_raw_log
from storage.verification.row_places import RowPlaces
from storage.verification.rules import Rule, rules_of
from tests.storage.damage import Sound, reseal, set_row
from tests.storage.zoo import play, spec, tiny_spec

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    ("column", "step", "value", "kind"),
    [
        ("kind", 0, 2, "row-kinds"),
        ("kind", 0, 0, "row-kinds"),
        ("kind", -1, 1, "row-kinds"),
        ("terminated", 0, 1, "flags"),
        ("truncated", -1, 1, "flags"),
        ("terminated", -2, 0, "flags"),
        ("truncated", -2, 1, "flags"),
        ("terminated", -2, 2, "truth-value"),
        ("behaviour_kind", 0, 5, "behaviour-kind"),
        ("behaviour_kind", 0, 0, "behaviour"),
        ("behaviour_kind", -1, 1, "closing-row"),
        ("behaviour", 0, NAN, "behaviour"),
        ("behaviour", 0, [0, 0, 0.5, 0], "behaviour"),
        ("behaviour", 0, [0, 0, 0.5, -1], "behaviour"),
        ("behaviour", -1, 0, "closing-row"),
        ("reward", 0, INF, "not-finite"),
        ("reward", 0, 7.25, "return"),
        ("reward", -1, 1, "closing-row"),
        ("policy_update", 0, 3, "policy-update"),
        ("policy_update", -2, 3, "policy-update"),
        ("policy_update", -1, 0, "closing-row"),
        ("observation", 0, [0, NAN, 0], "not-finite"),
        ("observation", -1, [0, INF, 0], "not-finite"),
        ("action", 0, [0, NAN], "not-finite"),
        ("action", 0, [0, np.nextafter(np.float32(1), np.float32(2))], "action-bounds"),
        ("action", -1, [0, 1], "closing-row"),
        ("raw_action", 0, [NAN, 0], "not-finite"),
        ("raw_action", 0, INF, "not-finite"),
    ],
)
def test_a_value_that_no_writer_stores_is_found(
    column: str, step: int, value: Any, kind: str, sound: Sound
) -> None:
    with storage.open(sound.path) as store:
        record = next(r for r in store.records(0) if r["length"] > 2 and r["ending"] == 1)
    start, closing = int(record["start"]), int(record["start"] + record["length"])
    set_row(sound, 0, column, start + step if step >= 0 else closing + 1 + step, value)
    reseal(sound, 0)
    found = {each.kind: each for each in storage.verify(sound.path).errors}
    assert kind in found
    assert found[kind].ordinals == (int(record["ordinal"]),)
    assert found[kind].rows is not None
    assert start <= found[kind].rows[0] <= closing
    assert "checksum" not in found


def test_values_under_a_wrong_checksum_are_not_judged_twice(sound: Sound) -> None:
    set_row(sound, 0, "reward", 0, NAN)
    assert sound.kinds() == {"checksum"}


def test_no_draw_and_a_uniform_behaviour_are_legal(sound: Sound) -> None:
    set_row(sound, 0, "raw_action", 0, NAN)
    set_row(sound, 0, "behaviour_kind", 0, BehaviourKind.UNIFORM)
    set_row(sound, 0, "behaviour", 0, NAN)
    reseal(sound, 0)
    assert sound.kinds() == set()


@pytest.mark.parametrize(
    "fields",
    [{"return": 1e9}, {"first_policy_update": 77}, {"ending": 2}, {"ending": 4}],
    ids=str,
)
def test_a_record_that_its_rows_contradict_is_found(fields: dict[str, Any], sound: Sound) -> None:
    reseal(sound, 0, **fields)
    kinds = {"return": "return", "first_policy_update": "policy-update", "ending": "flags"}
    assert sound.kinds() == {"episode-table", kinds[next(iter(fields))]}


def write_one(path: Path, seen: Any, acted: Any, **step: Any) -> None:
    with storage.create(path, spec(seen, acted)) as store, store.writer() as writer:
        writer.begin(0, seen.sample())
        values = {"action": acted.sample(), "observation": seen.sample(), "reward": 0.0}
        writer.step(0, **(values | step), terminated=True, truncated=False)


BOX = spaces.Box(-1, 1, (2,), np.float32)


@pytest.mark.parametrize(
    "probabilities", [[0.5, 0.6], [1.5, -0.5], [0.2, 0.2]], ids=["sum", "range", "short"]
)
def test_probabilities_that_are_none_are_warned_of(
    probabilities: list[float], tmp_path: Path
) -> None:
    write_one(tmp_path / "s", BOX, spaces.Discrete(2), behaviour=probabilities)
    report = storage.verify(tmp_path / "s")
    assert [each.kind for each in report.warnings] == ["probabilities"]
    assert report.sound


def test_probabilities_of_product_spaces_sum_to_one_each(tmp_path: Path) -> None:
    space = spaces.Tuple((spaces.MultiDiscrete([2, 3]), spaces.MultiBinary(1)))
    right = [0.5, 0.5, 0.2, 0.3, 0.5, 0.1, 0.9]
    write_one(tmp_path / "right", BOX, space, behaviour=right)
    assert storage.verify(tmp_path / "right").findings == ()
    wrong = [0.6, 0.6, 0.1, 0.2, 0.5, 0.1, 0.9]
    write_one(tmp_path / "wrong", BOX, space, behaviour=wrong)
    assert [e.kind for e in storage.verify(tmp_path / "wrong").findings] == ["probabilities"]


def test_observations_outside_their_box_are_warned_of(tmp_path: Path) -> None:
    outside = np.array([0, 1.5], np.float32)
    write_one(tmp_path / "s", BOX, spaces.Discrete(2), observation=outside)
    report = storage.verify(tmp_path / "s")
    assert [each.kind for each in report.warnings] == ["observation-bounds"]
    assert report.warnings[0].rows == (1, 2)
    assert report.sound


@pytest.fixture
def places(tmp_path: Path) -> tuple[storage.Store, RowPlaces]:
    with storage.create(tmp_path / "s", tiny_spec()) as store:
        with store.writer() as writer:
            for episode in range(8):
                play(writer, 0, episode)
        store.refresh()
        return store, RowPlaces(read_raw_log(StorePaths(store.path).log(0)))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_blocks_may_break_off_anywhere(size: int, places: tuple[storage.Store, RowPlaces]) -> None:
    """Also within an episode, whose sum of rewards is carried on in the writer's order."""
    store, where = places
    for column in store.schema.columns:
        rows = store.segment(0).array(column.name).copy()
        rules = rules_of(column, store.schema, where)
        if column.name == "behaviour":
            kinds = store.segment(0).array("behaviour_kind")
            rules += behaviour_rules(store.schema, where, kinds)
        assert not broken(rules, rows, size), column.name
        if column.name == "reward":
            last = int(where.closings[4]) - 1
            rows[last - 1] += 1e-9
            assert broken(rules, rows, size) == {("return", last)}


def broken(rules: list[Rule], rows: np.ndarray, size: int) -> set[tuple[str, int]]:
    found = set()
    for first in range(0, len(rows), size):
        block = Block(first, rows[first : first + size])
        for rule in rules:
            found |= {(rule.kind, first + int(row)) for row in np.flatnonzero(rule.bad(block))}
    return found
