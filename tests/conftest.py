"""What all tests share. Keep it small: a fixture belongs beside the tests that need it."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.support import compiled, runs, signals
from tests.support.servers.leaving import LEAVING

# A machine under load must not fail a property because one example took long; pytest-timeout
# still ends what hangs. Failing examples are printed as code, to be pasted into a test.
settings.register_profile("innkeeper", deadline=None, print_blob=True)
settings.load_profile("innkeeper")


GARBAGE_THRESHOLD = 50_000
"""Containers that may be made before somebody looks for garbage, as in a started service."""


MEMORY = Path("/dev/shm")  # noqa: S108 - the tests' own folders in it have names of their own
ROOM_BYTES = 8 * 2**30
"""What the tests' servers and services leave there at most, with as much to spare."""


RUN = pytest.StashKey[runs.Run]()
"""Where the main process of a run has it; workers have none."""
LOST = pytest.StashKey[list[str]]()
"""Workers that died."""
DIED: Any = "???"
"""In place of the phase of a test, in the report that xdist makes about a worker that died."""
WELL = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


def pytest_configure(config: pytest.Config) -> None:
    """Work in memory; compile statements once; collect thousands of tests without garbage."""
    config.stash[LOST] = []
    if not _is_worker(config):
        _work_in_memory()
        _begin_run(config)
    runs.enlist()
    compiled.share()
    gc.disable()


def _is_worker(config: pytest.Config) -> bool:
    """Whether another process distributes the tests that run here."""
    return hasattr(config, "workerinput")


def _work_in_memory() -> None:
    """Keep databases that are thrown away where no disk is waited for, if there is room.

    What a killed process has written is there afterwards, as on a disk. ``TMPDIR`` is another
    choice.
    """
    has_chosen = "TMPDIR" in os.environ
    if not has_chosen and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= ROOM_BYTES:
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None


def _begin_run(config: pytest.Config) -> None:
    """Remove what killed runs have left, and make a folder for all that this one makes."""
    for line in runs.sweep({runs.place(), MEMORY}):
        sys.stderr.write(f"{line}\n")
    run = config.stash[RUN] = runs.Run()
    os.environ |= {runs.VARIABLE: str(run.folder), "TMPDIR": str(run.folder)}
    tempfile.tempdir = None
    if config.option.basetemp is None:
        config.option.basetemp = str(run.folder / runs.TESTS)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Have the programs that tests start react to signals by default."""
    is_distributing = session.config.getoption("dist", "no") != "no"
    if not is_distributing or _is_worker(session.config):
        signals.give_programs_defaults(is_worker=_is_worker(session.config))


def pytest_collection_finish() -> None:
    """Look for none among them either: they stay to the end, and most tests are short."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD)
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object | None) -> None:
    """Remember a worker that died."""
    if error is not None:
        node.config.stash[LOST].append(node.gateway.id)


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """End the run behind the report about a worker that died.

    The others would first run what they have been given, which takes minutes; and what the
    dead one has not run would be left out.
    """
    node = getattr(report, "node", None)
    if node is not None and report.when == DIED and node.config.stash[LOST]:
        pytest.exit(f"a worker was lost: {report.longrepr}", pytest.ExitCode.TESTS_FAILED)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the servers that tests shared, and what else is left; a lost worker is a failure."""
    LEAVING.close()
    if session.config.stash[LOST] and session.exitstatus in WELL:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    _end_run(session.config, keeps_tests=session.exitstatus not in WELL)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End a run that had no session, as for ``--help``."""
    _end_run(config, keeps_tests=False)


def _end_run(config: pytest.Config, *, keeps_tests: bool) -> None:
    run = config.stash.get(RUN, None)
    if run is not None and (left := run.end(keeps_tests=keeps_tests)):
        sys.stderr.write(f"\nTests had left running: {', '.join(left)}.\n")


@pytest.fixture(autouse=True)
def fresh_loggers() -> None:
    """Have every logger of the program look at the log's settings anew.

    One that was used in a started service keeps the settings of that service, and whoever
    captures what is logged in a later test would see nothing.
    """
    for name, module in list(sys.modules.items()):
        if name.startswith("innkeeper.") and hasattr(module, "LOG"):
            vars(module.LOG).pop("bind", None)
