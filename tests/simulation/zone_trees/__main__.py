"""``python -m tests.simulation.zone_trees``: simulates trees of zones with many seeds."""

from __future__ import annotations

import sys

from tests.simulation.stepping.many_seeds import main
from tests.simulation.zone_trees.simulation import run

if __name__ == "__main__":
    sys.exit(main("tests.simulation.zone_trees", "trees", run))
