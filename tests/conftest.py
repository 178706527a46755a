"""What all tests share. Keep it small: a fixture belongs beside the tests that need it."""

from __future__ import annotations

import sys

import pytest
from hypothesis import settings

# A machine under load must not fail a property because one example took long; pytest-timeout
# still ends what hangs. Failing examples are printed as code, to be pasted into a test.
settings.register_profile("innkeeper", deadline=None, print_blob=True)
settings.load_profile("innkeeper")


@pytest.fixture(autouse=True)
def fresh_loggers() -> None:
    """Have every logger of the program look at the log's settings anew.

    One that was used in a started service keeps the settings of that service, and whoever
    captures what is logged in a later test would see nothing.
    """
    for name, module in list(sys.modules.items()):
        if name.startswith("innkeeper.") and hasattr(module, "LOG"):
            vars(module.LOG).pop("bind", None)
