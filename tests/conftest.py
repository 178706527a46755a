"""What all tests share. Keep it small: a fixture belongs beside the tests that need it."""

from __future__ import annotations

import gc
import sys

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


def pytest_configure() -> None:
    """Compile statements once; look for no garbage while thousands of tests are collected."""
    compiled.share()
    gc.disable()


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
