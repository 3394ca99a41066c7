"""Plays trials in processes of their own."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import shutil
import signal
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import storage
from pipeline.cliffwalk.folder import CliffwalkFolder
from pipeline.cliffwalk.record import Record
from storage.errors import SharpwaveError
from training.cliffwalk.memory import fill_store
from training.cliffwalk.trial import Trial

__all__ = ["make_memory", "missing_memories", "played"]

_PARENT_DEATH_SIGNAL = 1
"""Linux, prctl(2): the signal that a process gets when its parent dies."""


def make_memory(path: Path, n: int) -> None:
    """Makes the store at `path`, whole or not at all; one that is there stays."""
    if path.exists():
        return
    path.parent.mkdir(exist_ok=True)
    staged = path.with_name(f".{path.name}.new")
    shutil.rmtree(staged, ignore_errors=True)
    fill_store(staged, n)
    staged.rename(path)


def missing_memories(trials: Sequence[Trial], folder: CliffwalkFolder) -> list[int]:
    """The numbers of states whose stores are to be made before `trials` are played."""
    sizes = {trial.n for trial in trials if trial.sampler.name != "oracle"}
    return [n for n in sorted(sizes) if not folder.memory(n).exists()]


def played(trials: Sequence[Trial], folder: CliffwalkFolder, processes: int) -> Generator[Record]:
    """Finished trials, as they finish; memories that are missing are made first.

    Close the generator to end it early: no process is left then.
    """
    missing = [(folder.memory(n), n) for n in missing_memories(trials, folder)]
    if processes == 1 or len(trials) == 1:
        for path, n in missing:
            make_memory(path, n)
        for trial in trials:
            yield _play(trial, folder)
        return
    with _workers(min(processes, len(trials))) as executor:
        # The largest first: it takes as long as all others together.
        for done in [executor.submit(make_memory, *each) for each in reversed(missing)]:
            done.result()
        pending: set[Future[Record]] = set()
        for trial in trials:
            pending.add(executor.submit(_play, trial, folder))
            while len(pending) >= 2 * processes:
                finished, pending = wait(pending, return_when=FIRST_COMPLETED)
                yield from (each.result() for each in finished)
        while pending:
            finished, pending = wait(pending, return_when=FIRST_COMPLETED)
            yield from (each.result() for each in finished)


def _play(trial: Trial, folder: CliffwalkFolder) -> Record:
    begun = time.perf_counter()
    store = None if trial.sampler.name == "oracle" else _opened(folder.memory(trial.n))
    outcome = trial.play(store)
    return Record(trial, outcome, time.perf_counter() - begun)


@cache
def _opened(path: Path) -> storage.Store:
    """A store, opened once a process."""
    return storage.open(path)


@contextmanager
def _workers(count: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that leave Ctrl-C to their parent, which ends them when it is interrupted."""
    context = multiprocessing.get_context("spawn")
    before = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(count, context, initializer=_begin)
    try:
        with _deaf():
            for _ in range(count):
                executor.submit(os.getpid)
        yield executor
    except BaseException as error:
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
        executor.shutdown(cancel_futures=True)
        if isinstance(error, BrokenProcessPool):
            raise SharpwaveError(
                "a process that played trials was killed, perhaps for want of memory; finished "
                "trials are kept, and the same command with fewer --processes plays the rest"
            ) from error
        raise
    executor.shutdown()


def _begin() -> None:
    """In a process that plays: ignore Ctrl-C, and end when the parent does, even if killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)


@contextmanager
def _deaf() -> Iterator[None]:
    """No interrupts while processes start, which take that over from their parent for good."""
    before: Any = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
