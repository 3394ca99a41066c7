"""Whether a collection may go into a store that exists."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from storage.errors import ConfigError, SchemaMismatchError

if TYPE_CHECKING:
    from storage import EnvironmentSpec, Store
    from storage.segment import SegmentInfo
    from training.environments.recording import Recording

__all__ = ["check_environment", "check_not_of_a_run", "check_recording", "check_seed"]


def check_environment(store: Store, spec: EnvironmentSpec) -> None:
    """Refuses steps of another environment than the store's, or of one made otherwise.

    Raises:
        SchemaMismatchError: naming what differs and both values.
    """
    kept = store.env_spec
    for name in ("observation_space", "action_space"):
        there, here = getattr(kept, name), getattr(spec, name)
        if there != here:
            raise SchemaMismatchError(
                f"{store.path} holds steps of {kept.id} with {name} {there}, but {spec.id} has "
                f"{here}; give another --store"
            )
    old, new = kept.to_json(), spec.to_json()
    for name in ("id", "kwargs", "wrappers"):
        there, here = _plain(old[name]), _plain(new[name])
        if there != here:
            raise SchemaMismatchError(
                f"{store.path} holds steps of {kept.id} with environment.{name} {there}, but this "
                f"collection has {here}; steps of both would look alike, so give another --store"
            )


def check_recording(store: Store, recording: Recording) -> None:
    """Refuses a store that keeps the environment's steps in another form than a new one would.

    Raises:
        SchemaMismatchError: naming what differs and both values.
    """
    for name, here in dataclasses.asdict(recording).items():
        there = getattr(store.schema, name)
        if there != here:
            raise SchemaMismatchError(
                f"{store.path} was made with {name} {there}, and steps of {store.env_spec.id} are "
                f"kept with {name} {here}; give another --store"
            )


def check_not_of_a_run(store: Store) -> None:
    """Refuses the store that a training run writes: its replay and its curve are of its own steps.

    Raises:
        ConfigError: naming the run.
    """
    for folder in {store.path.absolute().parent, store.path.resolve().parent}:
        if _is_run(folder, store):
            raise ConfigError(
                f"{store.path} is the store of the run {folder}, which counts its own steps there; "
                "give another --store"
            )


def check_seed(store: Store, seed: int) -> None:
    """Refuses a seed of which the store holds an episode of any lane already.

    Raises:
        ConfigError: naming store and seed.
    """
    if any(_is_of_seed(store, segment, seed) for segment in store.segments):
        raise ConfigError(
            f"{store.path} was collected with --seed={seed} before: the same episodes would be "
            "written again. Give another --seed."
        )


def _is_of_seed(store: Store, segment: SegmentInfo, seed: int) -> bool:
    """Whether a segment's first episode of known seed was reset as this seed says.

    A segment holds the episodes of one lane of one collection, so that one of them tells.
    """
    from training.collector import reset_seed

    records = store.records(segment.id)
    known = records[records["seed_known"]]
    if not len(known) or known["lane_episode"][0] < 0:
        return False
    return int(known["seed"][0]) == reset_seed(seed, segment.lane, int(known["lane_episode"][0]))


def _is_run(folder: Path, store: Store) -> bool:
    """Whether `folder` has the settings of a run that wrote into `store`, or checkpoints of one."""
    settings = folder / "config.yaml"
    if not settings.is_file():
        return False
    if store.path.name == "store" and (folder / "checkpoints").is_dir():
        return True
    try:
        values = yaml.safe_load(settings.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return False
    name = values.get("name") if isinstance(values, dict) else None
    return name is not None and any(segment.run == name for segment in store.segments)


def _plain(value: Any) -> Any:
    """Wrappers by their full class paths; everything else as it is."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict) and value.keys() == {"class_path", "kwargs"}:
        path = value["class_path"].replace(":", ".")
        full = path if "." in path else f"gymnasium.wrappers.{path}"
        return value | {"class_path": full}
    return value
