"""Fixtures and hooks of all tests. Keep it small: a fixture belongs beside its tests."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.support import closing, compiled, run_folders, signals
from tests.support.servers.leaving import LEAVING

# A machine under load must not fail a property because one example took long; pytest-timeout
# still ends a hanging test. Failing examples are printed as code for a test.
settings.register_profile("innkeeper", deadline=None, print_blob=True)
settings.load_profile("innkeeper")


GARBAGE_THRESHOLD = 50_000
"""The threshold of allocations before a garbage collection, as in a started service."""


MEMORY = Path("/dev/shm")  # noqa: S108 - the tests' own folders in it have names of their own
ROOM_BYTES = 8 * 2**30
"""The most that the tests' servers and services need there, doubled for safety."""


RUN = pytest.StashKey[run_folders.Run]()
"""The main process keeps its run here; workers have none."""
LOST = pytest.StashKey[list[str]]()
"""Workers that died."""
DIED: Any = "???"
"""Replaces the phase of a test in xdist's report about a worker that died."""
WELL = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


def pytest_configure(config: pytest.Config) -> None:
    """Use memory for temporary files; share compiled statements; collect without garbage checks."""
    config.stash[LOST] = []
    if not _is_worker(config):
        _work_in_memory()
        _begin_run(config)
    run_folders.enlist()
    compiled.share()
    gc.disable()


def _is_worker(config: pytest.Config) -> bool:
    """Whether another process distributes the tests of this one."""
    return hasattr(config, "workerinput")


def _work_in_memory() -> None:
    """Put temporary databases into memory instead of on a disk, if there is room.

    Writes of a killed process survive there, as on a disk. ``TMPDIR`` selects another
    place.
    """
    has_chosen = "TMPDIR" in os.environ
    if not has_chosen and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= ROOM_BYTES:
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None


def _begin_run(config: pytest.Config) -> None:
    """Remove the remains of killed runs, and make a folder for this one."""
    for line in run_folders.sweep({run_folders.place(), MEMORY}):
        sys.stderr.write(f"{line}\n")
    run = config.stash[RUN] = run_folders.Run()
    os.environ |= {run_folders.VARIABLE: str(run.folder), "TMPDIR": str(run.folder)}
    tempfile.tempdir = None
    if config.option.basetemp is None:
        config.option.basetemp = str(run.folder / run_folders.TESTS)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Make the programs that tests start react to signals by default."""
    is_distributing = session.config.getoption("dist", "no") != "no"
    if not is_distributing or _is_worker(session.config):
        signals.give_programs_defaults(is_worker=_is_worker(session.config))


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection: they live to the end."""
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
    """Stop the run after the report about a worker that died.

    The other workers would first run their queued tests, which takes minutes, and the tests of
    the dead worker would be missing.
    """
    node = getattr(report, "node", None)
    if node is not None and report.when == DIED and node.config.stash[LOST]:
        pytest.exit(f"a worker was lost: {report.longrepr}", pytest.ExitCode.TESTS_FAILED)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Stop the servers that tests shared, and other remains; a dead worker is a failure."""
    LEAVING.close()
    if session.config.stash[LOST] and session.exitstatus in WELL:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    _end_run(session.config, keeps_tests=session.exitstatus not in WELL)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End a run without a session, as for ``--help``."""
    _end_run(config, keeps_tests=False)


def _end_run(config: pytest.Config, *, keeps_tests: bool) -> None:
    run = config.stash.get(RUN, None)
    if run is not None and (left := run.end(keeps_tests=keeps_tests)):
        sys.stderr.write(f"\nTests had left running: {', '.join(left)}.\n")


@pytest.fixture(autouse=True)
def closed_databases() -> Iterator[None]:
    """Close the databases that a test leaves open."""
    with closing.closed():
        yield


@pytest.fixture(autouse=True)
def fresh_loggers() -> None:
    """Make every logger of the program read the log's settings again.

    A logger that a started service used keeps that service's settings, and a later test could
    not capture its output.
    """
    for name, module in list(sys.modules.items()):
        if name.startswith("innkeeper.") and hasattr(module, "LOG"):
            vars(module.LOG).pop("bind", None)
