"""Programs reuse the memory of large arrays."""

from __future__ import annotations

import subprocess
import sys

ARRAYS, TIMES = 10, 20
PAGES = ARRAYS * 8 * 50_000 // 4096
CODE = f"""
import resource
from contextlib import redirect_stdout, suppress
from io import StringIO
import numpy as np
from innkeeper.main import main
with suppress(SystemExit), redirect_stdout(StringIO()):
    main(["--help"])
def use():
    return [np.ones(50_000) for _ in range({ARRAYS})]
use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range({TIMES}):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def test_the_memory_of_arrays_is_used_for_the_next_ones() -> None:
    """Otherwise, the kernel would clear the pages of all arrays again."""
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, timeout=60
    )
    assert int(done.stdout) < PAGES * TIMES / 2
