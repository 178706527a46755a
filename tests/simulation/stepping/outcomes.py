"""What a simulated run found, and how its loop ends."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from tests.simulation.stepping.virtual_time import VirtualLoop


@dataclass(slots=True)
class Outcome:
    """The result of one run: what is wrong, and what happened."""

    seed: int
    faults: list[str] = field(default_factory=list)
    fates: Counter[str] = field(default_factory=Counter)
    deaths: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    virtual_s: float = 0.0


def end(loop: VirtualLoop) -> None:
    """Cancel what is left, and close the loop."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left))
    loop.close()
