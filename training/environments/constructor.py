"""Finds what makes an environment: by gymnasium id, module, class path, or name of a game."""

from __future__ import annotations

import difflib
import importlib
from typing import TYPE_CHECKING, Any

import gymnasium

from storage.class_path import load_object
from storage.errors import EnvironmentNotFoundError
from training.environments.atari import (
    ATARI,
    atari_hint,
    find_game,
    missing_package,
    register_atari,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from training.environments.environment_config import WrapperConfig

__all__ = ["find_constructor", "find_wrapper", "lacking"]

Environment = gymnasium.Env[Any, Any]
_ALE = "ALE/"


def find_constructor(identifier: str) -> Callable[..., Environment]:
    """What makes the environment of that name, called with its keyword arguments.

    Raises:
        EnvironmentNotFoundError: no such id, module or class (close names are listed), or a package
            that it needs is missing.
    """
    if identifier.startswith(ATARI):
        return _atari_game(identifier)
    if identifier.startswith(_ALE) and not register_atari():
        raise missing_package(identifier)
    if identifier in gymnasium.registry:
        return _registered(identifier)
    if ":" in identifier:
        return _from_module(identifier)
    if "." in identifier:
        return _factory(identifier)
    return _registered(_latest_version(identifier))


def _atari_game(identifier: str) -> Callable[..., Environment]:
    from training.environments.atari_game import AtariGame
    from training.environments.atari_settings import atari_settings

    game = find_game(identifier)

    def create(**kwargs: Any) -> Environment:
        return AtariGame(game, atari_settings(kwargs))

    return create


def _registered(identifier: str) -> Callable[..., Environment]:
    """The constructor of a registered id; its module is imported so that hooks come first."""
    spec = gymnasium.registry.get(identifier)
    entry = None if spec is None else spec.entry_point
    if isinstance(entry, str):
        try:
            importlib.import_module(entry.partition(":")[0])
        except (ImportError, gymnasium.error.DependencyNotInstalled) as error:
            raise lacking(f"environment {identifier!r}", error) from error

    def create(**kwargs: Any) -> Environment:
        return gymnasium.make(identifier, disable_env_checker=True, **kwargs)

    return create


def _latest_version(identifier: str) -> str:
    """The newest registered version of a name without one (``Hopper`` gives ``Hopper-v5``)."""
    specs = [spec for spec in gymnasium.registry.values() if _unversioned(spec) == identifier]
    if not specs and register_atari() and identifier in gymnasium.registry:
        return identifier
    if not specs:
        raise EnvironmentNotFoundError(_unknown(identifier))
    return max(specs, key=lambda spec: spec.version or 0).id


def _unversioned(spec: Any) -> str:
    return spec.name if spec.namespace is None else f"{spec.namespace}/{spec.name}"


def _from_module(identifier: str) -> Callable[..., Environment]:
    module_name, _, name = identifier.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise EnvironmentNotFoundError(
            f"environment {identifier!r}: module {module_name!r} cannot be imported "
            f"({type(error).__name__}: {error}); install it, or correct it or the name before the "
            "colon"
        ) from error
    factory: Callable[..., Environment] | None = getattr(module, name, None)
    if factory is not None:
        return _callable(identifier, factory)
    if name in gymnasium.registry:
        return _registered(name)
    raise EnvironmentNotFoundError(
        f"environment {identifier!r}: module {module_name!r} neither defines nor registers "
        f"{name!r}. {_suggestion(name)}"
    )


def _factory(identifier: str) -> Callable[..., Environment]:
    try:
        factory = load_object(identifier)
    except Exception as error:
        raise EnvironmentNotFoundError(f"{_unknown(identifier)} ({error})") from error
    return _callable(identifier, factory)


def _callable(identifier: str, factory: Any) -> Callable[..., Environment]:
    if not callable(factory):
        raise EnvironmentNotFoundError(
            f"environment {identifier!r} is no class or function but {type(factory).__name__}"
        )
    return factory  # type: ignore[no-any-return]


def _unknown(identifier: str) -> str:
    hint = atari_hint(identifier) or _suggestion(identifier)
    return f"no environment is called {identifier!r}. {hint}"


def _suggestion(identifier: str) -> str:
    register_atari()
    lowered = {name.lower(): name for name in gymnasium.registry}
    close = difflib.get_close_matches(identifier.lower(), lowered, n=5, cutoff=0.6)
    if close:
        return f"Close names: {', '.join(lowered[name] for name in close)}"
    return "Give a gymnasium id (Hopper-v5), module:EnvId, or the class path of a factory"


def find_wrapper(wrapper: WrapperConfig) -> Callable[..., Environment]:
    """What wraps an environment, called with it and the wrapper's keyword arguments.

    Raises:
        EnvironmentNotFoundError: no such class (close names are listed), or none.
    """
    path = wrapper.class_path
    if "." not in path and ":" not in path:
        path = f"gymnasium.wrappers.{path}"
    try:
        found = load_object(path)
    except Exception as error:
        names = difflib.get_close_matches(path.rpartition(".")[2], dir(gymnasium.wrappers), n=3)
        hint = f" Close names: {', '.join(names)}" if names else ""
        raise EnvironmentNotFoundError(
            f"wrapper {wrapper.class_path!r} does not exist ({error}).{hint}"
        ) from error
    if not callable(found):
        raise EnvironmentNotFoundError(
            f"wrapper {wrapper.class_path!r} is no class or function but {type(found).__name__}"
        )
    return found  # type: ignore[no-any-return]


def lacking(what: str, error: BaseException) -> EnvironmentNotFoundError:
    """The error for a package that ``what`` needs and that could not be imported."""
    return EnvironmentNotFoundError(
        f"{what} needs a package that is not installed or cannot be loaded: {error}; install it"
    )
