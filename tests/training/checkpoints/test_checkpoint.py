"""Files that are no checkpoint, or no longer one."""

from __future__ import annotations

import copy
import os
import pickle
import random
import shutil
import stat
import zipfile
from pathlib import Path

import pytest
import torch

from storage.errors import CheckpointError
from tests.training.tiny import ROUND, differences, longer, run, tiny_config
from training.checkpoints.checkpoint import (
    best_checkpoint,
    last_checkpoint,
    named_segments,
    pinned_segments,
)
from training.checkpoints.checkpoint_file import read_checkpoint
from training.loading import load


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A run of two lanes, with an open episode and a best checkpoint."""
    path = tmp_path_factory.mktemp("run")
    run(CONFIG, path)
    return path


CONFIG = tiny_config(rounds=10, lanes=2, scheme="pser", evaluate_every=4 * ROUND)


@pytest.mark.parametrize(
    "content", [b"", b"torn", b"\x80\x02", b"PK\x03\x04 and no more", bytes(range(200))]
)
def test_bytes_that_are_no_checkpoint_are_named(tmp_path, content):
    path = tmp_path / "last.ckpt"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"last\.ckpt cannot be read as a checkpoint"):
        read_checkpoint(path)


def test_a_folder_and_a_hole_in_place_of_a_checkpoint_are_named(tmp_path):
    (tmp_path / "last.ckpt").mkdir()
    with pytest.raises(CheckpointError, match=r"last\.ckpt is a folder"):
        read_checkpoint(tmp_path / "last.ckpt")
    with (tmp_path / "huge.ckpt").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(CheckpointError, match=r"huge\.ckpt cannot be read"):
        read_checkpoint(tmp_path / "huge.ckpt")


def test_another_program_s_checkpoint_is_named(tmp_path):
    torch.save({"state_dict": {}}, tmp_path / "other.ckpt")
    with pytest.raises(CheckpointError, match="holds no Sharpwave agent"):
        read_checkpoint(tmp_path / "other.ckpt")


def test_every_flipped_bit_is_found_or_changes_nothing(folder, tmp_path):
    """A zip has padding and dates, which nothing reads; all else has a checksum or is refused."""
    good = folder / "checkpoints/last.ckpt"
    content, data = read_checkpoint(good), good.read_bytes()
    path, found = tmp_path / "last.ckpt", 0
    chance = random.Random(1)
    places = chance.sample(range(len(data)), 500)
    for place in places:
        flipped = bytearray(data)
        flipped[place] ^= 1 << chance.randrange(8)
        path.write_bytes(flipped)
        read, error = _attempt(read_checkpoint, path)
        if error:
            assert str(path) in error
            found += 1
        else:
            assert differences(read, content) == []
    assert found > 250


def test_a_flipped_tensor_is_named_with_its_entry_and_what_to_use_instead(folder, tmp_path):
    shutil.copytree(folder / "checkpoints", tmp_path, dirs_exist_ok=True)
    path = tmp_path / "last.ckpt"
    with zipfile.ZipFile(path) as archive:
        entry = max(archive.infolist(), key=lambda each: each.file_size)
    data = bytearray(path.read_bytes())
    data[entry.header_offset + 200] ^= 1
    path.write_bytes(data)
    message = rf"entry {entry.filename} .*use .*previous\.ckpt, which is whole"
    with pytest.raises(CheckpointError, match=message):
        read_checkpoint(path)
    (tmp_path / "previous.ckpt").write_bytes(b"damaged, too")
    with pytest.raises(CheckpointError, match=r"use .*best\.ckpt, which is whole"):
        read_checkpoint(path)
    (tmp_path / "best.ckpt").unlink()
    with pytest.raises(CheckpointError, match="use another one"):
        read_checkpoint(path)


def _attempt(function, *words, **options):
    """What a function gives and "", or None and its error's text."""
    try:
        return function(*words, **options), ""
    except CheckpointError as error:
        return None, str(error)


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
def test_a_truncated_file_is_named(folder, tmp_path, share):
    data = (folder / "checkpoints/last.ckpt").read_bytes()
    path = tmp_path / "last.ckpt"
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(CheckpointError, match=r"last\.ckpt cannot be read"):
        read_checkpoint(path)


class _Bomb:
    """Unpickled, it makes a file."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self):
        return os.mknod, (str(self.target),)


def test_a_pickle_that_runs_code_is_refused_and_runs_nothing(folder, tmp_path):
    target = tmp_path / "made"
    content = read_checkpoint(folder / "checkpoints/last.ckpt")
    pickle.loads(pickle.dumps(_Bomb(target)))
    assert target.exists(), "the bomb is a real one"
    target.unlink()
    whole = tmp_path / "whole.ckpt"
    torch.save(content | {"bomb": _Bomb(target)}, whole)
    plain = tmp_path / "plain.ckpt"
    plain.write_bytes(pickle.dumps(_Bomb(target)))
    old = tmp_path / "old.ckpt"
    torch.save({"bomb": _Bomb(target)}, old, _use_new_zipfile_serialization=False)
    for path in (whole, plain, old):
        with pytest.raises(CheckpointError, match="cannot be read as a checkpoint") as caught:
            read_checkpoint(path)
        assert "weights_only" not in str(caught.value)
        with pytest.raises(CheckpointError):
            load(path)
    with pytest.raises(CheckpointError, match=r"\(it holds code, \w+\.mknod, which is not run\)"):
        read_checkpoint(whole)
    assert not target.exists()


def test_files_that_would_fill_the_memory_are_refused(folder, tmp_path):
    path = tmp_path / "last.ckpt"
    content = read_checkpoint(folder / "checkpoints/last.ckpt")
    torch.save(content | {"wide": torch.zeros(1).expand(2**45)}, path)
    with pytest.raises(CheckpointError, match="no plain tensor"):
        read_checkpoint(path)
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "zipped.ckpt", "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name), zipfile.ZIP_DEFLATED)
    with pytest.raises(CheckpointError, match="compressed"):
        read_checkpoint(tmp_path / "zipped.ckpt")
    nested: list[object] = []
    for _ in range(40):
        nested = [nested] * 10
    torch.save(content | {"nested": nested}, path)
    with pytest.raises(CheckpointError, match="nested beyond measure"):
        read_checkpoint(path)


def test_an_emptied_state_of_the_experience_is_none_to_go_on_from(folder, tmp_path):
    work = shutil.copytree(folder, tmp_path / "work")
    path = work / "checkpoints/last.ckpt"
    torch.save(read_checkpoint(path) | {"OnlineExperience": {}}, path)
    _, error = _attempt(run, longer(CONFIG, 11), work, resume=True)
    assert "last.ckpt: it lacks OnlineExperience" in error


def _leaves(value, place=()):
    """Places of all values and containers below one."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield (*place, key)
            yield from _leaves(each, (*place, key))
    elif isinstance(value, list):
        for index, each in enumerate(value[:2]):
            yield (*place, index)
            yield from _leaves(each, (*place, index))


_GONE = object()
_WRONG = (_GONE, None, -1, "text", float("nan"), {}, [], torch.zeros(3), 2**70)


def _spoilt(content, place, wrong):
    spoilt = copy.deepcopy(content)
    parent = spoilt
    for key in place[:-1]:
        parent = parent[key]
    if wrong is _GONE:
        del parent[place[-1]]
    else:
        parent[place[-1]] = copy.deepcopy(wrong)
    return spoilt


@pytest.mark.parametrize(
    "cases", [pytest.param(25, id="few"), pytest.param(3000, id="many", marks=pytest.mark.soak)]
)
def test_a_checkpoint_with_wrong_content_is_refused_or_works(folder, tmp_path, cases):
    """Keys that are gone and values of wrong types: an error that names the file, or a resumed run.

    Config and environment are compared with the run's own, callbacks and hyper-parameters of the
    optimizer are Lightning's and torch's.
    """
    content = read_checkpoint(folder / "checkpoints/last.ckpt")
    kept = {
        key: content[key]
        for key in ("OnlineExperience", "sharpwave", "optimizer_states", "loops", "state_dict")
    }
    places = [
        place for place in _leaves(kept) if not {"config", "environment"} & {*map(str, place)}
    ]
    chance = random.Random(5)
    refused = 0
    for number in range(cases):
        place, wrong = chance.choice(places), chance.choice(_WRONG)
        work = tmp_path / str(number)
        shutil.copytree(folder, work)
        path = work / "checkpoints/last.ckpt"
        torch.save(_spoilt(content, place, wrong), path)
        try:
            _, error = _attempt(run, longer(CONFIG, 11), work, resume=True)
        except Exception as error:
            raise AssertionError(f"{place} as {wrong!r}: {error!r}") from error
        if error:
            assert "last.ckpt" in error, (place, wrong, error)
            refused += 1
        shutil.rmtree(work)
    assert refused > cases // 2


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (("OnlineExperience",), "lacks OnlineExperience"),
        (("OnlineExperience", "position"), "OnlineExperience lacks position"),
        (("OnlineExperience", "view", "episodes"), "view lacks episodes"),
        (("sharpwave", "counters", "updates"), "counters lacks updates"),
        (("optimizer_states",), "lacks optimizer_states"),
        (("loops", "fit_loop", "epoch_progress"), "lacks loops.epoch_progress"),
        (("state_dict", "network.head.bias"), "another network: network.head.bias"),
    ],
)
def test_what_a_checkpoint_lacks_is_named(folder, tmp_path, place, message):
    shutil.copytree(folder, tmp_path / "run")
    path = tmp_path / "run/checkpoints/last.ckpt"
    torch.save(_spoilt(read_checkpoint(path), place, _GONE), path)
    with pytest.raises(CheckpointError, match=f"last.ckpt.*{message}"):
        run(longer(CONFIG, 11), tmp_path / "run", resume=True)


@pytest.mark.parametrize(
    ("place", "wrong", "message"),
    [
        (("state_dict", "network.head.bias"), float("nan"), "network.head.bias holds NaN or inf"),
        (("state_dict", "network.head.bias"), float("inf"), "network.head.bias holds NaN or inf"),
        (("optimizer_states", 0, "state", 0, "exp_avg"), float("nan"), "exp_avg holds NaN or inf"),
        (("sharpwave", "counters", "environment_steps"), 2**53, "environment_steps is int 9007"),
        (("sharpwave", "counters", "environment_steps"), 161, r"collector\.steps is 160"),
        (("sharpwave", "counters", "updates"), 0, r"updates is 0, 0 since .* were due"),
        (("sharpwave", "counters", "updates"), 10**9, r"updates is 1000000000"),
        (("sharpwave", "counters", "origin_updates"), 7, r"since origin_updates, where"),
        (("sharpwave", "counters", "origin_steps"), 10**6, r"origin_steps is 1000000, beyond"),
        (("sharpwave", "counters", "wall_time"), float("inf"), "wall_time is float inf"),
        (("sharpwave", "learning", "beta"), 1.5, "beta is float 1.5, not a number from 0 to 1"),
    ],
)
def test_numbers_that_no_run_has_are_refused_and_a_whole_one_is_named(
    folder, tmp_path, place, wrong, message
):
    shutil.copytree(folder / "checkpoints", tmp_path, dirs_exist_ok=True)
    path = tmp_path / "last.ckpt"
    content = read_checkpoint(path)
    old = content
    for key in place:
        old = old[key]
    if isinstance(old, torch.Tensor):
        wrong = torch.full_like(old, wrong)
    torch.save(_spoilt(content, place, wrong), path)
    for function in (read_checkpoint, load):
        with pytest.raises(CheckpointError, match=rf"{message}.*use .*previous\.ckpt, which is"):
            function(path)
    shutil.copy(path, tmp_path / "previous.ckpt")
    with pytest.raises(CheckpointError, match=r"use .*best\.ckpt, which is whole"):
        read_checkpoint(path)


@pytest.mark.parametrize("kind", [stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFCHR])
def test_pipes_sockets_and_devices_are_refused_unread(folder, tmp_path, kind):
    shutil.copytree(folder / "checkpoints", tmp_path / "checkpoints")
    for name in ("last.ckpt", "best.ckpt"):
        path = tmp_path / "checkpoints" / name
        path.unlink()
        try:
            os.mknod(path, kind | 0o600, os.makedev(1, 5))
        except PermissionError:
            pytest.skip("devices cannot be made here")
        with pytest.raises(CheckpointError, match=r"is a pipe, .*use .*previous\.ckpt, which is"):
            read_checkpoint(path)
    assert best_checkpoint(tmp_path).name == "previous.ckpt"


def test_one_of_weights_alone_acts_but_does_not_resume(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "run")
    path = tmp_path / "run/checkpoints/last.ckpt"
    content = read_checkpoint(path)
    few = ("sharpwave", "state_dict", "pytorch-lightning_version", "global_step", "epoch")
    torch.save({name: content[name] for name in few}, path)
    agent = load(path)
    action = agent.act(agent.spec.observation_space.sample())
    assert agent.spec.action_space.contains(action)
    with pytest.raises(CheckpointError, match="lacks loops, optimizer_states, lr_schedulers"):
        run(longer(CONFIG, 11), tmp_path / "run", resume=True)


def test_the_checkpoint_before_stands_in_for_a_missing_last_one(folder, tmp_path):
    checkpoints = tmp_path / "checkpoints"
    shutil.copytree(folder / "checkpoints", checkpoints)
    assert last_checkpoint(tmp_path).name == "last.ckpt"
    assert best_checkpoint(tmp_path).name == "best.ckpt"
    (checkpoints / "last.ckpt").unlink()
    (checkpoints / "best.ckpt").unlink()
    assert last_checkpoint(tmp_path) == best_checkpoint(tmp_path) == checkpoints / "previous.ckpt"


def test_the_segments_that_checkpoints_name_are_known(folder, tmp_path):
    assert named_segments(folder / "checkpoints/last.ckpt") == {0, 1}
    assert pinned_segments(folder) == {0, 1}
    shutil.copytree(folder / "checkpoints", tmp_path / "checkpoints")
    (tmp_path / "checkpoints/previous.ckpt").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"previous\.ckpt"):
        pinned_segments(tmp_path)
