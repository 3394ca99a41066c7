"""Where a run computes: one CPU or one GPU, and a refusal of everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from storage.errors import ConfigError

if TYPE_CHECKING:
    import lightning

__all__ = ["Accelerator", "check_options", "check_trainer", "device_type"]

Accelerator = Literal["cpu", "gpu", "auto"]

_REMEDY = (
    "make it with lightning.Trainer(accelerator='cpu' or 'cuda', devices=1, precision='32-true')"
)


def device_type(wish: Accelerator | Literal["cuda"]) -> Literal["cpu", "cuda"]:
    """The device of torch that an accelerator stands for; ``auto`` takes a GPU if there is one.

    Raises:
        ConfigError: a GPU is asked for and torch sees none.

    """
    if wish == "cpu":
        return "cpu"
    import torch

    if torch.cuda.is_available():
        return "cuda"
    if wish == "auto":
        return "cpu"
    raise ConfigError(
        f"the accelerator is {wish}, but torch {torch.__version__} sees no CUDA device; install "
        "the driver and a torch with CUDA, or choose loop.accelerator: cpu"
    )


def check_options(options: dict[str, Any]) -> None:
    """Refuse options of ``lightning.Trainer`` that ask for anything but one CPU or GPU.

    Raises:
        ConfigError: another accelerator, several devices or hosts, or a strategy.

    """
    allowed: dict[str, tuple[Any, ...]] = {
        "accelerator": ("cpu", "gpu", "cuda", "auto"),
        "devices": (1, "1", [0]),
        "num_nodes": (1,),
        "strategy": ("auto",),
        "precision": (32, "32", "32-true"),
    }
    for name, values in allowed.items():
        if name in options and options[name] not in values:
            shown = " or ".join(repr(value) for value in values)
            raise ConfigError(
                f"training.trainer got {name}={options[name]!r}: a run learns in float32 on one "
                f"CPU or one GPU; leave {name} out, or give {shown}"
            )


def check_trainer(trainer: lightning.Trainer) -> None:
    """Refuse a trainer that spreads a run over devices, or puts it on neither CPU nor GPU.

    Raises:
        ConfigError: several devices, a strategy for several, another accelerator or precision.

    """
    from lightning.pytorch.strategies import SingleDeviceStrategy

    strategy, precision = trainer.strategy, trainer.precision
    kind = strategy.root_device.type
    alone = isinstance(strategy, SingleDeviceStrategy) and trainer.world_size == 1
    if not alone or kind not in ("cpu", "cuda"):
        raise ConfigError(
            f"the trainer uses {trainer.world_size} device(s) of type {kind} by "
            f"{type(strategy).__name__}; a run learns on one CPU or one GPU: {_REMEDY}"
        )
    if precision != "32-true":
        raise ConfigError(
            f"the trainer's precision is {precision}; a run learns in float32: {_REMEDY}"
        )
