"""Devices that refuse blocks: ext4 in a sparse file on a full tmpfs, and one whose power is cut."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

import storage
from storage.errors import DeviceError
from storage.writer import Writer
from tests.faults.nursery import Nursery, eventually
from tests.faults.oracle import read_told, survey
from tests.faults.power import MIB, loop_mount, mount_tmpfs, power_disk, reboot, unmount
from tests.storage.zoo import spec, tiny_spec

SIZE, GOOD = 120 * MIB, 68 * MIB


@dataclass
class BadDisk:
    """``folder`` is an ext4 whose device has room for fewer blocks than it says."""

    folder: Path
    backing: Path

    def resize(self, size: int) -> None:
        """How many bytes of blocks the device really has."""
        words = ["mount", "-o", f"remount,size={size}", str(self.backing)]
        subprocess.run(words, check=True, capture_output=True)

    def remount(self) -> None:
        """Forget every page that is in memory alone."""
        unmount(self.folder)
        loop_mount(self.backing / "disk.img", self.folder)


@pytest.fixture
def bad_disk(tmp_path: Path) -> Iterator[BadDisk]:
    disk = BadDisk(tmp_path / "disk", tmp_path / "backing")
    for folder in (disk.folder, disk.backing):
        folder.mkdir()
    try:
        mount_tmpfs(disk.backing, "160m")
        image = disk.backing / "disk.img"
        with image.open("wb") as file:
            file.truncate(SIZE)
        loop_mount(image, disk.folder, SIZE)
        unmount(disk.folder)
        # The device has the blocks where the file system keeps its own things, and few others.
        with image.open("r+b") as file:
            start = file.read(GOOD)
            file.seek(0)
            file.write(start)
        disk.remount()
        usage = os.statvfs(disk.backing)
        disk.resize((usage.f_blocks - usage.f_bfree) * usage.f_frsize)
        yield disk
    finally:
        unmount(disk.folder)
        unmount(disk.backing)


WIDTH, STEPS = 4096, 3


def wide_spec() -> storage.EnvironmentSpec:
    """Rows of 32 KiB, so that few of them fill a small device."""
    return spec(spaces.Box(-np.inf, np.inf, (WIDTH,), np.float64), spaces.Discrete(4))


def write(writer: Writer, number: int) -> storage.EpisodeRecord | None:
    """An episode whose observations say ``number`` and the step; None when it was refused."""
    record = None
    try:
        writer.begin(0, np.full(WIDTH, 10.0 * number), seed=number, lane_episode=number)
        for t in range(STEPS):
            record = writer.step(
                0,
                action=t,
                reward=1.0,
                observation=np.full(WIDTH, 10.0 * number + t + 1),
                terminated=t == STEPS - 1,
                truncated=False,
            )
    except DeviceError as error:
        if re.search(r"the device did not take /\S+/store/\S+ \(", str(error)) is None:
            raise
        return None
    return record


def check(store: storage.Store, record: storage.EpisodeRecord) -> None:
    (episode,) = [each for each in store.iterate_episodes() if each.record == record]
    expected = 10.0 * record.lane_episode + np.arange(STEPS + 1.0)
    np.testing.assert_array_equal(episode.observation, np.repeat(expected[:, None], WIDTH, 1))


@pytest.mark.soak
def test_a_lane_whose_device_refused_a_segment_goes_on_in_a_new_one(bad_disk: BadDisk) -> None:
    path = bad_disk.folder / "store"
    writer = storage.create(path, wide_spec()).writer(durability="fsync", capacity=1024)
    before = list(iter(partial(write, writer, 7), None))
    bad_disk.resize(160 * MIB)
    after = [write(writer, 8) for _ in range(5)]
    assert None not in after
    assert before[-1].segment < after[0].segment
    writer.close()
    del writer
    bad_disk.remount()
    reboot(path)
    survey(path)  # also what was not acknowledged is whole, or not shown
    with storage.open(path) as store:
        for record in before + after:
            check(store, record)


def test_a_dead_device_is_one_error_that_names_a_file(writers: Nursery, tmp_path: Path) -> None:
    told = tmp_path / "told"
    with power_disk(tmp_path) as disk:
        storage.create(disk.folder / "store", tiny_spec())
        options = {"durability": "fsync"}
        child = writers.start("write", disk.folder / "store", told, 0, 2, options)
        eventually(lambda: read_told(told), "no episode came")
        disk.cut()
        assert child.wait() == 1, child.said
        pattern = rf"the device did not take {disk.folder}/store/\S+ \(Input/output error\)"
        assert re.search(pattern, child.said), child.said
        assert "storage.errors.DeviceError" in child.said
