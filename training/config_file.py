"""Builds settings from plain mappings and YAML files, strictly, and writes them back."""

from __future__ import annotations

import dataclasses
import difflib
import os
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, cast

import yaml

from storage.atomic import write_atomic
from storage.errors import ConfigError
from storage.replay.schemes.priority_settings import PRIORITY_PRESETS, PrioritySettings
from training.agent_config import AgentConfig
from training.agents.registry import config_class, kind_of
from training.config import RunConfig, WrapperConfig
from training.refer import ReferSettings, preset
from training.setting_checks import shown
from training.settings_files import files_of, merged, read_mapping
from training.settings_yaml import yaml_text, yaml_value

__all__ = ["from_mapping", "load_config", "read_mapping", "save_config", "to_mapping"]

_Settings = TypeVar("_Settings")


def load_config(
    path: Path | str | Sequence[Path | str], overrides: Sequence[str] = ()
) -> RunConfig:
    """The settings in a YAML file, with ``overrides`` such as ``loop.steps=5000`` applied.

    Several files are merged in their order, as ``sharpwave train`` does: later ones win. Each may
    ``include`` others (see :func:`read_mapping`). Numbers may be written as 1e4 and 1_000 in files
    and overrides, whole ones too.

    Raises:
        ConfigError: no such file, no YAML, an unknown key (the nearest names are listed), or an
            impossible value.
    """
    if isinstance(overrides, str):
        raise ConfigError(
            f"overrides are {overrides!r}; give a list, as [{overrides!r}], and several files as a "
            "list in the first place"
        )
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    if not paths:
        raise ConfigError("no file of settings is named; give at least one")
    values = merged(each.values for one in paths for each in files_of(Path(one)))
    for override in overrides:
        _apply(values, override)
    return from_mapping(RunConfig, values)


def save_config(config: RunConfig, path: Path) -> None:
    """Writes every setting of ``config`` as YAML that :func:`load_config` reads back, at once.

    Under ``loop.durability: fsync`` the device has the bytes before they get their name.
    """
    text = yaml_text(to_mapping(config))
    synced = config.loop.durability == "fsync"
    write_atomic(path, text.encode(), path.parent, sync=synced)


def to_mapping(config: Any) -> dict[str, Any]:
    """The settings as plain dictionaries, lists and scalars."""
    return dataclasses.asdict(config)


def from_mapping(settings: type[_Settings], values: Mapping[str, Any], at: str = "") -> _Settings:
    """An instance of the dataclass ``settings`` from plain ``values``.

    Args:
        settings: The dataclass.
        values: Its fields; nested dataclasses are nested mappings.
        at: Where ``values`` stands in the whole configuration, for messages.

    Raises:
        ConfigError: unknown or missing keys, values of a wrong type or outside their range.
    """
    if not isinstance(values, Mapping):
        raise ConfigError(f"{at or 'the configuration'} is {values!r}; it must be a mapping")
    fields = {each.name: each for each in dataclasses.fields(settings)}  # type: ignore[arg-type]
    for key in values:
        if key not in fields:
            raise ConfigError(_unknown_key(str(key), list(fields), at))
    hints = typing.get_type_hints(settings)
    built = {
        key: _convert(
            hints[key], _completed(fields[key], hints[key], value), f"{at}.{key}" if at else key
        )
        for key, value in values.items()
    }
    missing = [name for name, each in fields.items() if name not in built and _required(each)]
    if missing:
        raise ConfigError(f"{at or 'the configuration'} lacks {', '.join(missing)}")
    return _built(settings, built, at)


def _completed(each: dataclasses.Field[Any], hint: Any, value: Any) -> Any:
    """A section with what it leaves out: the field's own default may differ from its class's."""
    if each.default_factory is dataclasses.MISSING or not isinstance(value, Mapping):
        return value
    default = each.default_factory()
    if type(default) is not hint:
        return value
    return {name: getattr(default, name) for name in hint.__dataclass_fields__} | dict(value)


def _built(settings: type[_Settings], values: dict[str, Any], at: str) -> _Settings:
    """The settings; what they refuse is said to stand at ``at``, unless the message says so."""
    try:
        return settings(**values)
    except ConfigError as error:
        if at in str(error):
            raise
        raise ConfigError(f"{at}: {error}") from None


def _apply(values: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals:
        raise ConfigError(f"override {override!r} has no '='; write section.key=value")
    *sections, last = key.strip().lstrip("-").split(".")
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise ConfigError(f"override {override!r}: {section} is no section")
    try:
        values[last] = yaml_value(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"override {override!r}: {text!r} is no YAML: {error}") from error


def _required(each: dataclasses.Field[Any]) -> bool:
    return each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING


def _unknown_key(key: str, known: list[str], at: str) -> str:
    where = f"{at}.{key}" if at else key
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]}?" if close else "."
    return f"there is no setting {where}{hint} Settings here: {', '.join(sorted(known))}"


def _convert(hint: Any, value: Any, at: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return value if isinstance(value, cast("type", hint)) else _dataclass(hint, value, at)
    if origin in (Union, types.UnionType):
        return _convert_union(arguments, value, at)
    if origin is Literal:
        return _choice(arguments, value, at)
    if origin is list:
        return [
            _convert(arguments[0], each, f"{at}[{i}]") for i, each in enumerate(_list(value, at))
        ]
    if origin is dict:
        return dict(_mapping(value, at))
    return value if hint is Any else _scalar(hint, value, at)


def _dataclass(hint: Any, value: Any, at: str) -> Any:
    """A nested section; a bare text names a wrapper's class, a variant of ReF-ER or a preset."""
    if isinstance(value, str) and hint is WrapperConfig:
        return WrapperConfig(value)
    if isinstance(value, str) and hint is ReferSettings:
        return preset(value)
    if isinstance(value, str) and hint is PrioritySettings:
        return PRIORITY_PRESETS[_choice(tuple(PRIORITY_PRESETS), value, at)]
    if hint is AgentConfig:
        hint = config_class(kind_of(_mapping(value, at)))
    return from_mapping(hint, value, at)


def _convert_union(arguments: tuple[Any, ...], value: Any, at: str) -> Any:
    if value is None and type(None) in arguments:
        return None
    kinds = [each for each in arguments if each is not type(None)]
    if len(kinds) == 1:
        return _convert(kinds[0], value, at)
    for kind in kinds:
        try:
            return _convert(kind, value, at)
        except ConfigError:
            continue
    raise ConfigError(f"{at} is {value!r}; expected {' or '.join(map(str, kinds))}")


def _choice(choices: tuple[Any, ...], value: Any, at: str) -> Any:
    if value not in choices:
        close = difflib.get_close_matches(str(value), [str(each) for each in choices], n=1)
        hint = f"; did you mean {close[0]}?" if close else "."
        listed = ", ".join(map(str, choices))
        raise ConfigError(f"{at} is {value!r}{hint} Possible values: {listed}")
    return value


def _list(value: Any, at: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise ConfigError(f"{at} is {value!r}; it must be a list")
    return list(value)


def _mapping(value: Any, at: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{at} is {value!r}; it must be a mapping")
    return value


def _scalar(kind: type, value: Any, at: str) -> Any:
    wanted = f"{at} is {shown(value)}; it must be {_ARTICLES.get(kind, kind.__name__)}"
    if kind is float and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError as error:
            raise ConfigError(f"{at} is {shown(value)}; it must be finite") from error
        except (TypeError, ValueError) as error:
            raise ConfigError(wanted) from error
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ConfigError(wanted)
    return value


_ARTICLES: dict[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
}
