"""Makes gymnasium environments from settings.

An environment is named by a gymnasium id (``Hopper-v5``), by a module that registers one
(``my_package:MyEnv-v0``), or by the class path of a class or factory (``my_package.envs.Maze``,
``my_package.envs:make_maze``). ``Atari/Pong`` is a game of `atari_game`, its kwargs those of
`atari_settings`. Wrappers are named by class path and applied in order.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import gymnasium

from storage.environment_spec import EnvironmentSpec
from storage.errors import (
    ConfigError,
    EnvironmentNotFoundError,
    SchemaMismatchError,
    SharpwaveError,
)
from training.environments.constructor import find_constructor, find_wrapper, lacking
from training.environments.environment_warnings import plain_warnings
from training.environments.recording import Recording, recording
from training.environments.replayability import warn_unreplayable
from training.quiet import quiet_mujoco

if TYPE_CHECKING:
    from collections.abc import Callable

    from training.environments.environment_config import EnvironmentConfig, WrapperConfig

__all__ = [
    "check_same_spaces",
    "describe_environment",
    "describe_recorded",
    "environment_spec",
    "make_environment",
]

Environment = gymnasium.Env[Any, Any]


def make_environment(config: EnvironmentConfig) -> Environment:
    """The environment that ``config`` names, wrapped.

    Raises:
        EnvironmentNotFoundError: no such id, module, class or wrapper (close names are listed), a
            package that it needs is missing, or what is named is no environment.
        ConfigError: it or a wrapper cannot be made with the settings given.
    """
    with plain_warnings():
        create = find_constructor(config.id)
        quiet_mujoco()
        env = _made(config, create)
        quiet_mujoco()
        for wrapper in config.wrappers:
            env = _wrapped(env, wrapper)
    return env


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


def check_same_spaces(
    kwargs: dict[str, Any], played: EnvironmentSpec, own: EnvironmentSpec
) -> None:
    """Refuses keyword arguments that give an environment other spaces than an agent's own.

    Raises:
        SchemaMismatchError: naming the space, both ways.
    """
    for name in ("observation_space", "action_space"):
        if getattr(played, name) != getattr(own, name):
            raise SchemaMismatchError(
                f"{own.id} with {kwargs} has {name} {getattr(played, name)}, the agent's is "
                f"{getattr(own, name)}; leave out what changes spaces"
            )


def describe_recorded(config: EnvironmentConfig) -> tuple[EnvironmentSpec, Recording]:
    """The environment that ``config`` names, and how a store records it.

    Raises:
        EnvironmentNotFoundError, ConfigError: as `make_environment`.
    """
    env = make_environment(config)
    try:
        return environment_spec(env, config), recording(env)
    finally:
        env.close()


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
    wrap, what = find_wrapper(wrapper), f"wrapper {wrapper.class_path!r}"
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
        return lacking(what, error)
    raised = f"{type(error).__name__}: {error}".rstrip(": ")
    return ConfigError(f"{what} cannot be made with {name} {kwargs}: {raised}; correct {name}")


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
