from __future__ import annotations

from dataclasses import replace
from functools import partial

import lightning
import pytest
import torch

from storage.errors import ConfigError
from tests.training.tiny import tiny_config
from training.assembly import trainer
from training.placement import check_trainer, device_type
from training.preflight import check_run

NO_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")


def config_of(accelerator, engine="auto"):
    config = tiny_config()
    loop = replace(config.loop, accelerator=accelerator)
    return replace(config, loop=loop, agent=replace(config.agent, engine=engine))


@NO_GPU
def test_a_gpu_that_is_not_there_is_refused_before_anything_is_made(tmp_path):
    message = r"accelerator is gpu, but torch .* sees no CUDA device.*loop\.accelerator: cpu"
    folder = tmp_path / "run"
    for refused in (
        partial(check_run, config_of("gpu")),
        partial(trainer, config_of("gpu"), folder),
        partial(trainer, config_of("cpu"), folder, accelerator="gpu"),
    ):
        with pytest.raises(ConfigError, match=message):
            refused()
    assert not folder.exists()


@NO_GPU
def test_auto_takes_what_there_is(tmp_path, monkeypatch):
    assert device_type("auto") == "cpu"
    assert trainer(config_of("auto"), tmp_path).strategy.root_device.type == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert (device_type("auto"), device_type("gpu"), device_type("cpu")) == ("cuda", "cuda", "cpu")


def test_engines_that_cannot_run_are_refused_before_anything_is_made(monkeypatch):
    monkeypatch.setenv("CXX", "/nowhere/c++")
    with pytest.raises(ConfigError, match=r"no C.. compiler /nowhere/c.. was found"):
        check_run(config_of("cpu", "compiled"))
    check_run(config_of("cpu", "auto"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.raises(ConfigError, match="fused runs on the CPU only, not on cuda"):
        check_run(config_of("gpu", "fused"))


@pytest.mark.parametrize(
    "options",
    [
        {"devices": 2},
        {"devices": -1},
        {"devices": [0, 1]},
        {"num_nodes": 2},
        {"strategy": "ddp"},
        {"strategy": "fsdp"},
        {"strategy": "deepspeed"},
        {"accelerator": "mps"},
        {"accelerator": "tpu"},
        {"precision": "bf16-mixed"},
    ],
)
def test_what_a_run_cannot_use_is_named_with_what_it_can(tmp_path, options):
    (name, value), *_ = options.items()
    with pytest.raises(ConfigError) as caught:
        trainer(tiny_config(), tmp_path, **options)
    assert f"{name}={value!r}" in str(caught.value)
    assert f"leave {name} out, or give" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"devices": 2}, r"2 device\(s\) of type cpu by DDPStrategy"),
        ({"num_nodes": 2}, r"2 device\(s\) of type cpu by DDPStrategy"),
        ({"devices": 1, "strategy": "ddp"}, r"1 device\(s\) of type cpu by DDPStrategy"),
        ({"precision": "bf16-mixed"}, "precision is bf16-mixed"),
    ],
)
def test_an_own_trainer_is_held_to_the_same(tmp_path, options, message):
    made = lightning.Trainer(accelerator="cpu", logger=False, default_root_dir=tmp_path, **options)
    with pytest.raises(ConfigError, match=message):
        check_trainer(made)


def test_one_cpu_passes(tmp_path):
    check_trainer(lightning.Trainer(accelerator="cpu", devices="auto", default_root_dir=tmp_path))
    assert trainer(tiny_config(), tmp_path, devices=1, strategy="auto").world_size == 1
