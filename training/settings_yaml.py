"""Settings as YAML text: 1e4 is a number, a key comes once, and errors say where."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import yaml

from storage.errors import ConfigError
from training.setting_checks import shown

__all__ = ["read_file", "yaml_text", "yaml_value"]

_FLOAT: Final = "tag:yaml.org,2002:float"
_EXPONENT: Final = re.compile(r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9_]+)[eE][-+]?[0-9]+$")
"""Numbers such as 1e4, which YAML 1.1 takes for text unless they have a point and a sign."""


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Takes 1e4 for a number; refuses a key given twice, and says where a value is impossible."""

    def compose_mapping_node(self, anchor: str | None) -> yaml.MappingNode:
        """A mapping as it is written, before others are merged into it."""
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    problem = f"{key.value!r} is given twice; leave one out"
                    raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
                seen.add(key.value)
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """The value of `node`; the text of a number or date may be none."""
        try:
            return super().construct_object(node, deep)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            kind = node.tag.rpartition(":")[2]
            problem = f"{shown(node.value)} is no possible {kind}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from error


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """Quotes text that looks like such a number."""


_Loader.add_implicit_resolver(_FLOAT, _EXPONENT, list("-+.0123456789"))
_Dumper.add_implicit_resolver(_FLOAT, _EXPONENT, list("-+.0123456789"))


def yaml_value(text: str) -> Any:
    """What YAML text stands for; raises `yaml.YAMLError` where that is nothing."""
    try:
        return yaml.load(text, Loader=_Loader)
    except RecursionError as error:
        raise yaml.YAMLError("it is nested too deeply") from error


def yaml_text(values: dict[str, Any]) -> str:
    """YAML that :func:`yaml_value` reads back; keys keep their order."""
    text: str = yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return text


def read_file(path: Path) -> dict[str, Any]:
    """What one YAML file holds, if that is a mapping.

    Raises:
        ConfigError: no such file, it cannot be read, it is no YAML, or holds something else.
    """
    try:
        values = yaml_value(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"there is no configuration file {path}") from error
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"{path} cannot be read: {reason}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is no YAML that can be used: {error}") from error
    if not isinstance(values, dict):
        kind = "nothing" if values is None else f"a {type(values).__name__}"
        raise ConfigError(f"{path} holds {kind}; it must hold a mapping of settings by name")
    return values
