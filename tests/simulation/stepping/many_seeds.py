"""The command line of a simulation: it runs many seeds, and prints what is wrong."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable

import structlog

from tests.simulation.stepping.outcomes import Outcome


def main(package: str, what: str, run: Callable[[int], Outcome]) -> int:
    """Run the seeds that the command line names. Returns 1 if anything is wrong.

    ``what`` is the name of the things that are simulated, in the plural.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {package}")
    parser.add_argument("--seeds", type=int, default=100, help=f"the number of {what}")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    wanted = parser.parse_args()
    only_crashes = structlog.make_filtering_bound_logger(logging.CRITICAL)
    structlog.configure(wrapper_class=only_crashes)
    begun, bad, deaths = time.perf_counter(), 0, 0
    fates, answers = Counter[str](), Counter[str]()
    for seed in range(wanted.first, wanted.first + wanted.seeds):
        outcome = run(seed)
        bad += bool(outcome.faults)
        deaths += outcome.deaths
        fates += outcome.fates
        answers += outcome.answers
        for each in outcome.faults:
            say(f"seed {seed}: {each}")
    took_s = time.perf_counter() - begun
    say(f"{wanted.seeds} {what} in {took_s:.0f} s, {bad} of them with faults")
    say(f"requests: {dict(fates)}")
    say(f"deaths of processes: {deaths}; answers: {dict(answers)}")
    return 1 if bad else 0


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
