"""What all tests share. Keep it small: a fixture belongs beside the tests that need it."""

from __future__ import annotations

from hypothesis import settings

# A machine under load must not fail a property because one example took long; pytest-timeout
# still ends what hangs. Failing examples are printed as code, to be pasted into a test.
settings.register_profile("innkeeper", deadline=None, print_blob=True)
settings.load_profile("innkeeper")
