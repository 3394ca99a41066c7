"""Settings from YAML files and the command line: every field of a config class is an option."""

from __future__ import annotations

import argparse
import dataclasses
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, cast

from docstring_parser import parse as parse_docstring
from docstring_parser import parse_from_object
from jsonargparse import ArgumentError, ArgumentParser, Namespace

from pipeline.nearest import nearest
from pipeline.parser import check_options
from pipeline.settings_help import SettingsHelp, default_text, metavar, positional_words
from storage.errors import ConfigError

__all__ = ["SettingsParser", "print_settings", "split_words", "without_printing"]

_PRINT: Final = "--print_config"
_PRINTS_SETTINGS: Final = "print the settings that the other options and files make, and stop"
_REFUSED: Final = re.compile(r'key "(?P<name>[^"]+)".*Got value: (?P<value>.*)', re.DOTALL)
"""What jsonargparse says of a value of the wrong type."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Option:
    """One leaf field of a config class, by its dotted name."""

    name: str
    hint: Any
    default: Any
    help: str


class SettingsParser:
    """A jsonargparse parser over a tree of config dataclasses, whose errors are `ConfigError`s.

    Every leaf field `a.b` becomes `--a.b`, with the type, default and documentation that its class
    gives. Config files are merged in order; options on the command line win over them.
    """

    def __init__(
        self,
        verb: str,
        usage: str,
        description: str,
        settings: type[Any],
        extra: Mapping[str, str] = MappingProxyType({}),
        chosen: Mapping[type[Any], type[Any]] = MappingProxyType({}),
    ) -> None:
        """`usage` is what follows the verb, as "CONFIG ... [--SECTION.NAME=VALUE ...]".

        `extra` are the verb's own options and their help; their values come back as text. `chosen`
        gives the subclass to take for a config class that fields are declared with.
        """
        self.prog = f"sharpwave {verb}"
        self.parser = ArgumentParser(
            prog=self.prog,
            usage=f"{self.prog} {usage}",
            description=f"{description}\n\n{positional_words(usage)}".rstrip(),
            exit_on_error=False,
            formatter_class=SettingsHelp,
            print_config=None,  # jsonargparse's own prints before anything is checked
        )
        self._options = list(_options(settings, "", chosen))
        self._groups: dict[str, Any] = {}
        self.parser.add_argument("--config", action="config", help=argparse.SUPPRESS)
        self.parser.add_argument(
            _PRINT, action="store_true", default=argparse.SUPPRESS, help=_PRINTS_SETTINGS
        )
        self._extra = [f"--{name}" for name in extra]
        for name, text in extra.items():
            self.parser.add_argument(
                f"--{name}", type=str | None, default=None, help=text, metavar=name.upper()
            )
        for option in self._options:
            self._add(option)

    def parse(self, files: Sequence[Path], arguments: Sequence[str]) -> dict[str, Any]:
        """The merged settings as nested dictionaries; unknown and mistyped ones are refused.

        A verb takes --print_config out before, by `without_printing`.
        """
        known = [option.name for option in self._options]
        flags = [f"--{name}" for name in known]
        # jsonargparse appends to lists by `--name+=…`.
        plain = [word.replace("+=", "=", 1) for word in arguments]
        check_options(self.prog, plain, [*flags, *self._extra, _PRINT, "--help"])
        _check_once(self.prog, arguments)
        words = ["--config", _merged(files, known)] if files else []
        try:
            parsed = self.parser.parse_args([*words, *arguments], defaults=True)
        except (ArgumentError, argparse.ArgumentError, ValueError, OverflowError) as error:
            raise ConfigError(self._plainly(str(error))) from None
        self._check_unset(parsed)
        return self._nested(parsed)

    def _plainly(self, message: str) -> str:
        """What jsonargparse complains of, in words that need no Python."""
        refused = _REFUSED.search(message)
        kinds = {option.name: _base(option.hint) for option in self._options}
        if refused is None or refused["name"] not in kinds:
            return f"{self.prog}: {message}; see `{self.prog} --help`"
        value = refused["value"].strip()
        wanted = {
            list: f"a list, as [{value}]",
            dict: "settings by name, as {name: value}",
            str: f"text, as '{value}'",
        }[kinds[refused["name"]]]
        return f"{refused['name']} is {value}; it must be {wanted}"

    def _check_unset(self, parsed: Namespace) -> None:
        """Refuses null where a setting cannot be left open."""
        for option in self._options:
            if option.default is not None and parsed[option.name] is None:
                raise ConfigError(
                    f"{option.name} is null; leave it out for its default, "
                    f"{default_text(option.default)}"
                )

    def _add(self, option: _Option) -> None:
        section = option.name.rpartition(".")[0]
        if section not in self._groups:
            self._groups[section] = self.parser.add_argument_group(section or "settings")
        self._groups[section].add_argument(
            f"--{option.name}",
            type=_parsed_as(option.hint),
            default=option.default,
            help=option.help,
            metavar=metavar(option.hint),
        )

    def _nested(self, parsed: Namespace) -> dict[str, Any]:
        values = parsed.as_dict()
        for name in ("config", _PRINT.removeprefix("--")):
            values.pop(name, None)
        return _without_unset(values)


def _check_once(prog: str, arguments: Sequence[str]) -> None:
    """Refuses one option given twice; several `--name+=…`, which append to a list, are fine."""
    given: dict[str, str] = {}
    for word in arguments:
        name, _, value = word.partition("=")
        if name in given and not name.endswith("+"):
            raise ConfigError(
                f"{prog}: {name} is given twice, as {given[name]!r} and as {value!r}; leave one out"
            )
        given[name] = value


def split_words(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Positional words, and options as `--name=value`, each in order.

    `--name value` is joined, since every option but --help and --print_config takes a value.
    """
    positional: list[str] = []
    options: list[str] = []
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            positional.append(word)
        elif "=" in word or word in {"-h", "--help", _PRINT}:
            options.append(word)
        else:
            value = next(rest, None)
            if value is None:
                raise ConfigError(f"option {word} has no value; write {word}=VALUE")
            options.append(f"{word}={value}")
    return positional, options


def without_printing(options: Sequence[str]) -> tuple[list[str], bool]:
    """The options but --print_config, and whether that was among them."""
    return [option for option in options if option != _PRINT], _PRINT in options


def print_settings(config: Any) -> None:
    """Prints a config, all of it, as YAML that a settings file may hold."""
    from training.config_file import to_mapping
    from training.settings_yaml import yaml_text

    print(yaml_text(to_mapping(config)), end="")


def _options(
    settings: type[Any], prefix: str, chosen: Mapping[type[Any], type[Any]], own: Any = None
) -> Iterator[_Option]:
    """The leaves of a section; `own` is what its field has by default, if that is of the class."""
    hints = typing.get_type_hints(settings)
    help_texts = _help_texts(settings)
    for each in dataclasses.fields(settings):
        name, hint = f"{prefix}{each.name}", hints[each.name]
        default = _default(each) if own is None else getattr(own, each.name)
        if dataclasses.is_dataclass(hint):
            section = chosen.get(cast(type[Any], hint), cast(type[Any], hint))
            inner = default if type(default) is section else None
            yield from _options(section, f"{name}.", chosen, inner)
        else:
            yield _Option(name, hint, default, help_texts.get(each.name, ""))


def _help_texts(settings: type[Any]) -> dict[str, str]:
    texts: dict[str, str | None] = {}
    for base in reversed(settings.__mro__):
        texts |= {p.arg_name: p.description for p in parse_docstring(base.__doc__ or "").params}
    attributes = {p.arg_name: p.description for p in parse_from_object(settings).params}
    return {name: " ".join((text or "").split()) for name, text in (attributes | texts).items()}


def _parsed_as(hint: Any) -> Any:
    """What jsonargparse is to check: text, lists and sections; config classes check the rest.

    They word it plainly, and take 1e4 for a whole number.
    """
    base = _base(hint)
    if base is list:
        return list[Any]
    return hint if base in {str, dict} else Any


def _base(hint: Any) -> Any:
    """`list` of `list[int] | None`, `str` of `str`, and so on."""
    if isinstance(hint, types.UnionType):
        hint = next(each for each in typing.get_args(hint) if each is not type(None))
    return typing.get_origin(hint) or hint


def _default(each: dataclasses.Field[Any]) -> Any:
    if each.default is not dataclasses.MISSING:
        return each.default
    if each.default_factory is not dataclasses.MISSING:
        return each.default_factory()
    return None


def _without_unset(values: dict[str, Any]) -> dict[str, Any]:
    """Drops what is None, so that a config class reports its own missing fields."""
    kept = {key: _without_unset(v) if isinstance(v, dict) else v for key, v in values.items()}
    return {key: value for key, value in kept.items() if value is not None}


def _merged(files: Sequence[Path], known: list[str]) -> str:
    """What the files and those that they include make together, as YAML; keys are checked."""
    from training.settings_files import files_of, merged
    from training.settings_yaml import yaml_text

    parts = [part for file in files for part in files_of(_existing(file))]
    for part in parts:
        _check_keys(part.told, part.values, known)
    return yaml_text(merged(part.values for part in parts))


def _existing(file: Path) -> Path:
    if not file.exists():
        siblings = [str(path) for path in file.parent.glob("*.yaml")]
        raise ConfigError(f"there is no config file {file}{nearest(str(file), siblings)}")
    return file


def _check_keys(file: str, values: dict[str, Any], known: list[str], prefix: str = "") -> None:
    for key, value in values.items():
        name = f"{prefix}{key}"
        inside = any(other.startswith(f"{name}.") for other in known)
        if name not in known and not inside:
            raise ConfigError(f"{file}: there is no setting {name!r}{nearest(name, known)}")
        if inside and not isinstance(value, dict):
            raise ConfigError(f"{file}: {name!r} is a section of settings, not {value!r}")
        if inside:
            _check_keys(file, value, known, f"{name}.")
