"""What all tests share. Keep it small: a fixture belongs beside the tests that need it."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support import compiled
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


def pytest_configure() -> None:
    """Work in memory; compile statements once; collect thousands of tests without garbage."""
    _work_in_memory()
    compiled.share()
    gc.disable()


def _work_in_memory() -> None:
    """Keep databases that are thrown away where no disk is waited for, if there is room.

    What a killed process has written is there afterwards, as on a disk. ``TMPDIR`` is another
    choice.
    """
    has_chosen = "TMPDIR" in os.environ
    if not has_chosen and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= ROOM_BYTES:
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None


def pytest_collection_finish() -> None:
    """Look for none among them either: they stay to the end, and most tests are short."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD)
    gc.enable()


def pytest_sessionfinish() -> None:
    """End the servers that tests shared."""
    LEAVING.close()


@pytest.fixture(autouse=True)
def fresh_loggers() -> None:
    """Have every logger of the program look at the log's settings anew.

    One that was used in a started service keeps the settings of that service, and whoever
    captures what is logged in a later test would see nothing.
    """
    for name, module in list(sys.modules.items()):
        if name.startswith("innkeeper.") and hasattr(module, "LOG"):
            vars(module.LOG).pop("bind", None)
