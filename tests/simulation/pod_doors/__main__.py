"""``python -m tests.simulation.pod_doors``: simulates doors over pods with many seeds."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Sequence

import structlog

from tests.simulation.pod_doors.simulation import run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run many seeds, and print what is wrong. Returns 1 if anything is."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.pod_doors")
    parser.add_argument("--seeds", type=int, default=100, help="the number of doors")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    wanted = parser.parse_args(arguments)
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
    say(f"{wanted.seeds} doors in {took_s:.0f} s, {bad} of them with faults")
    say(f"requests to pods: {dict(fates)}")
    say(f"deaths of processes: {deaths}; answers: {dict(answers)}")
    return 1 if bad else 0


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
