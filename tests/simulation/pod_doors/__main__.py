"""``python -m tests.simulation.pod_doors``: simulates doors over pods with many seeds."""

from __future__ import annotations

import sys

from tests.simulation.pod_doors.simulation import run
from tests.simulation.stepping.many_seeds import main

if __name__ == "__main__":
    sys.exit(main("tests.simulation.pod_doors", "doors", run))
