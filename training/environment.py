"""Makes gymnasium environments from settings.

An environment is named by a gymnasium id (``Hopper-v5``), by a module that registers one
(``my_package:MyEnv-v0``), or by the class path of a class or factory (``my_package.envs.Maze``,
``my_package.envs:make_maze``). Wrappers are named by class path and applied in order.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import gymnasium

from storage.environment_spec import EnvironmentSpec
from storage.errors import ConfigError, EnvironmentNotFoundError
from training.atari import register_atari
from training.quiet import quiet_mujoco

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "EnvironmentConfig",
    "NotReplayableWarning",
    "WrapperConfig",
    "describe_environment",
    "load_object",
    "make_environment",
    "unreplayable_wrappers",
]

Environment = gymnasium.Env[Any, Any]
_ATARI = "ALE/"


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
        id: Gymnasium id, ``module:EnvId``, or class path of an environment class or factory.
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
        EnvironmentNotFoundError: no such id, module, class or wrapper; close names are listed.
    """
    create = _creator(config.id)
    quiet_mujoco()
    env = create(**config.kwargs)
    quiet_mujoco()
    for wrapper in config.wrappers:
        env = _wrapper_class(wrapper)(env, **wrapper.kwargs)
    return env


def load_object(class_path: str) -> Any:
    """The object at ``package.module.name`` or ``package.module:name``.

    Raises:
        ModuleNotFoundError, AttributeError: when the module or the name does not exist.
    """
    module_name, _, name = class_path.replace(":", ".").rpartition(".")
    if not module_name:
        raise ModuleNotFoundError(f"{class_path!r} is no class path")
    return getattr(importlib.import_module(module_name), name)


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
        warn_unreplayable(env)
        spec = EnvironmentSpec.from_env(env)
    finally:
        env.close()
    return dataclasses.replace(
        spec,
        id=config.id if env.spec is None else spec.id,
        kwargs=dict(config.kwargs),
        wrappers=[dataclasses.asdict(wrapper) for wrapper in config.wrappers],
    )


def _creator(identifier: str) -> Callable[..., Environment]:
    if identifier.startswith(_ATARI) and not register_atari():
        raise EnvironmentNotFoundError(
            f"environment {identifier!r} needs the package ale-py: pip install ale-py"
        )
    if identifier in gymnasium.registry:
        return _registered(identifier)
    if ":" in identifier:
        return _from_module(identifier)
    if "." in identifier:
        return _factory(identifier)
    return _registered(_latest_version(identifier))


def _registered(identifier: str) -> Callable[..., Environment]:
    """The constructor of a registered id; its module is imported so that hooks come first."""
    spec = gymnasium.registry.get(identifier)
    entry = None if spec is None else spec.entry_point
    if isinstance(entry, str):
        importlib.import_module(entry.partition(":")[0])

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
    except ModuleNotFoundError as error:
        raise EnvironmentNotFoundError(
            f"environment {identifier!r}: module {module_name!r} cannot be imported ({error}); "
            "install it or correct the name before the colon"
        ) from error
    factory: Callable[..., Environment] | None = getattr(module, name, None)
    if factory is not None:
        return factory
    if name in gymnasium.registry:
        return _registered(name)
    raise EnvironmentNotFoundError(
        f"environment {identifier!r}: module {module_name!r} neither defines nor registers "
        f"{name!r}. {_suggestion(name)}"
    )


def _factory(identifier: str) -> Callable[..., Environment]:
    try:
        factory = load_object(identifier)
    except (ModuleNotFoundError, AttributeError) as error:
        raise EnvironmentNotFoundError(f"{_unknown(identifier)} ({error})") from error
    if not callable(factory):
        raise EnvironmentNotFoundError(
            f"environment {identifier!r} is no class or function but {type(factory).__name__}"
        )
    return factory  # type: ignore[no-any-return]


def _unknown(identifier: str) -> str:
    return f"no environment is called {identifier!r}. {_suggestion(identifier)}"


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
        return load_object(path)  # type: ignore[no-any-return]
    except (ModuleNotFoundError, AttributeError) as error:
        names = difflib.get_close_matches(path.rpartition(".")[2], dir(gymnasium.wrappers), n=3)
        hint = f" Close names: {', '.join(names)}" if names else ""
        raise EnvironmentNotFoundError(
            f"wrapper {wrapper.class_path!r} does not exist ({error}).{hint}"
        ) from error


def _layers(env: Any) -> Iterator[Any]:
    while env is not None:
        yield env
        env = getattr(env, "env", None) if isinstance(env, gymnasium.Wrapper) else None


def _keeps_statistics(layer: Any) -> bool:
    known = (gymnasium.wrappers.NormalizeObservation, gymnasium.wrappers.NormalizeReward)
    if isinstance(layer, known):
        return True
    return any(hasattr(value, "update_from_moments") for value in vars(layer).values())
