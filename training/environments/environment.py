"""Makes gymnasium environments from settings.

An environment is named by a gymnasium id (``Hopper-v5``), by a module that registers one
(``my_package:MyEnv-v0``), or by the class path of a class or factory (``my_package.envs.Maze``,
``my_package.envs:make_maze``). ``Atari/Pong`` is a game of `atari_game`, its kwargs those of
`atari_settings`. Wrappers are named by class path and applied in order.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import gymnasium

from storage.class_path import load_object
from storage.environment_spec import EnvironmentSpec
from storage.errors import ConfigError, EnvironmentNotFoundError, SharpwaveError
from training.environments.atari import (
    ATARI,
    atari_hint,
    find_game,
    missing_package,
    register_atari,
)
from training.environments.environment_warnings import plain_warnings
from training.quiet import quiet_mujoco

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "EnvironmentConfig",
    "NotReplayableWarning",
    "WrapperConfig",
    "describe_environment",
    "environment_spec",
    "load_object",
    "make_environment",
    "stored_id",
    "unreplayable_wrappers",
]

Environment = gymnasium.Env[Any, Any]
_ALE = "ALE/"


class NotReplayableWarning(UserWarning):
    """An environment whose outputs depend on more than its seed and actions."""


@dataclass(frozen=True, slots=True)
class WrapperConfig:
    """One environment wrapper.

    Args:
        class_path: Class path of the wrapper; a bare name is looked up in ``gymnasium.wrappers``.
        kwargs: Keyword arguments of the wrapper besides the environment.
    """

    class_path: str
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EnvironmentConfig:
    """Which environment to act in.

    Args:
        id: Gymnasium id, ``Atari/Game``, ``module:EnvId``, or class path of an environment class or
            factory.
        kwargs: Keyword arguments of the environment.
        wrappers: Wrappers, the innermost first.
    """

    id: str
    kwargs: dict[str, Any] = field(default_factory=dict)
    wrappers: list[WrapperConfig] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.id:
            raise ConfigError("environment.id is empty; name an environment such as Hopper-v5")


def make_environment(config: EnvironmentConfig) -> Environment:
    """The environment that ``config`` names, wrapped.

    Raises:
        EnvironmentNotFoundError: no such id, module, class or wrapper (close names are listed), a
            package that it needs is missing, or what is named is no environment.
        ConfigError: it or a wrapper cannot be made with the settings given.
    """
    with plain_warnings():
        create = _creator(config.id)
        quiet_mujoco()
        env = _made(config, create)
        quiet_mujoco()
        for wrapper in config.wrappers:
            env = _wrapped(env, wrapper)
    return env


def _made(config: EnvironmentConfig, create: Callable[..., Environment]) -> Environment:
    what = f"environment {config.id!r}"
    try:
        env = create(**config.kwargs)
    except SharpwaveError:
        raise
    except (Exception, SystemExit) as error:
        raise _refused(what, "environment.kwargs", config.kwargs, error) from error
    return _checked(what, env)


def _wrapped(env: Environment, wrapper: WrapperConfig) -> Environment:
    wrap, what = _wrapper_class(wrapper), f"wrapper {wrapper.class_path!r}"
    try:
        wrapped = wrap(env, **wrapper.kwargs)
    except (Exception, SystemExit) as error:
        raise _refused(what, "its kwargs", wrapper.kwargs, error) from error
    return _checked(what, wrapped)


def _refused(
    what: str, name: str, kwargs: dict[str, Any], error: BaseException
) -> ConfigError | EnvironmentNotFoundError:
    """The error for what a constructor raised."""
    if isinstance(error, ImportError | gymnasium.error.DependencyNotInstalled):
        return _lacking(what, error)
    raised = f"{type(error).__name__}: {error}".rstrip(": ")
    return ConfigError(f"{what} cannot be made with {name} {kwargs}: {raised}; correct {name}")


def _lacking(what: str, error: BaseException) -> EnvironmentNotFoundError:
    return EnvironmentNotFoundError(
        f"{what} needs a package that is not installed or cannot be loaded: {error}; install it"
    )


def _checked(what: str, env: Any) -> Environment:
    if not isinstance(env, gymnasium.Env):
        raise EnvironmentNotFoundError(
            f"{what} gives a {type(env).__name__}, which is no gymnasium.Env; name a class or "
            "function that makes one single environment"
        )
    for name in ("observation_space", "action_space"):
        space = getattr(env, name, None)
        if not isinstance(space, gymnasium.Space):
            raise EnvironmentNotFoundError(
                f"{what} has no {name} (it is {space!r}); name an environment that sets it to a "
                "gymnasium.Space"
            )
    return env


def unreplayable_wrappers(env: Environment) -> list[str]:
    """Names of the wrappers of ``env`` that keep running statistics, outermost first.

    Such a wrapper shows other observations or rewards for the same seed and actions, so that an
    episode cannot be restored by replaying its actions.
    """
    return [type(layer).__name__ for layer in _layers(env) if _keeps_statistics(layer)]


def warn_unreplayable(env: Environment) -> None:
    """Warns, once a process for each set of wrappers, when ``env`` cannot be replayed."""
    names = unreplayable_wrappers(env)
    if names:
        warnings.warn(
            f"{', '.join(names)} keeps running statistics: episodes of this environment cannot be "
            "replayed from their seed, so a resumed run is not bit-exact. Sharpwave scales "
            "observations and rewards itself; remove the wrapper unless you need it.",
            NotReplayableWarning,
            stacklevel=2,
        )


def describe_environment(config: EnvironmentConfig) -> EnvironmentSpec:
    """Name, spaces and making of the environment; warns where it cannot be replayed."""
    env = make_environment(config)
    try:
        return environment_spec(env, config)
    finally:
        env.close()


def environment_spec(env: Environment, config: EnvironmentConfig) -> EnvironmentSpec:
    """Name, spaces and making of ``env``, which ``config`` made; warns as `warn_unreplayable`."""
    warn_unreplayable(env)
    spec = EnvironmentSpec.from_env(env)
    return dataclasses.replace(
        spec,
        id=config.id if env.spec is None else spec.id,
        kwargs=dict(config.kwargs),
        wrappers=[dataclasses.asdict(wrapper) for wrapper in config.wrappers],
    )


def stored_id(identifier: str) -> str:
    """The name that a store keeps of an environment with this id: one for all ways to spell it.

    Raises:
        EnvironmentNotFoundError: no such Atari game.
    """
    return ATARI + find_game(identifier) if identifier.startswith(ATARI) else identifier


def _creator(identifier: str) -> Callable[..., Environment]:
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
            raise _lacking(f"environment {identifier!r}", error) from error

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


def _wrapper_class(wrapper: WrapperConfig) -> Callable[..., Environment]:
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


def _layers(env: Any) -> Iterator[Any]:
    while env is not None:
        yield env
        env = getattr(env, "env", None) if isinstance(env, gymnasium.Wrapper) else None


def _keeps_statistics(layer: Any) -> bool:
    known = (gymnasium.wrappers.NormalizeObservation, gymnasium.wrappers.NormalizeReward)
    if isinstance(layer, known):
        return True
    return any(hasattr(value, "update_from_moments") for value in vars(layer).values())
