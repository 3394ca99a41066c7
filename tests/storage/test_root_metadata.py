from __future__ import annotations

import json

import pytest
import zarr

import storage
from storage.errors import CorruptStoreError, FormatVersionError, StoreNotFoundError
from tests.storage.zoo import F4

OWN = ("format_version", "store_uuid", "behaviour_family", "environment", "schema")


def own_attributes(data: bytes) -> dict | None:
    try:
        attributes = json.loads(data)["attributes"]
        return {key: attributes[key] for key in OWN}
    except (ValueError, LookupError, TypeError):
        return None


def test_no_flip_changes_what_a_store_is(f4: F4) -> None:
    """That of a bound or of a name would be a silent change of meaning."""
    f4.writer.close()
    file = f4.path / "steps.zarr/zarr.json"
    good = file.read_bytes()
    assert good == (f4.path / "log/store.json").read_bytes()
    refused = 0
    for at in range(0, len(good), 5):
        flipped = good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :]
        file.write_bytes(flipped)
        try:
            storage.open(f4.path)
        except (CorruptStoreError, FormatVersionError):
            refused += 1
        else:
            assert own_attributes(flipped) == own_attributes(good)
    assert refused > 200


def test_attributes_of_somebody_else_are_no_damage(f4: F4) -> None:
    f4.writer.close()
    zarr.open_group(f4.path / "steps.zarr", mode="r+").attrs["note"] = "from the lab"
    assert storage.open(f4.path).n_episodes == 4


def test_stores_without_a_checksum_are_read_and_get_their_copy(f4: F4) -> None:
    f4.writer.close()
    file = f4.path / "steps.zarr/zarr.json"
    document = json.loads(file.read_bytes())
    del document["attributes"]["checksum"]
    file.write_text(json.dumps(document))
    (f4.path / "log/store.json").unlink()
    assert storage.open(f4.path).n_episodes == 4
    assert not (f4.path / "log/store.json").exists()
    storage.open(f4.path, mode="r+")
    assert (f4.path / "log/store.json").read_bytes() == file.read_bytes()


def test_a_lost_description_is_told_from_no_store(f4: F4) -> None:
    f4.writer.close()
    (f4.path / "steps.zarr/zarr.json").unlink()
    with pytest.raises(StoreNotFoundError, match=r"log/store\.json is a copy of it.*repair"):
        storage.open(f4.path)
    (f4.path / "log/store.json").unlink()
    with pytest.raises(StoreNotFoundError, match=r"is no Sharpwave store"):
        storage.open(f4.path)
