"""Measures the cost of pclouds in a decision, for requests that name a pcloud and for others.

Always true: all tables have the same fleet, and decide the same requests in turns. So other load of
the machine affects all of them equally.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from msgspec.structs import replace

from benchmarks.deciding import WARM_UPS, once, spec_of, table_of
from benchmarks.figures import Figure, median, percentile
from benchmarks.fleet import Fleet
from innkeeper.domain.ids import HostIndex
from innkeeper.snapshot.columns import HostTable

HOSTS, PCLOUDS, OF_EACH = 10_000, 500, 10
"""The numbers of hosts, of pclouds, and of hosts in each pcloud. Half of the hosts are in a
pcloud."""
BLOCK = 50
MY_AUTOMATIC = 3
MINE = "mine"
KINDS = ("none", "plain", "automatic", "named")
"""The measured kinds.

``none`` has no pclouds. With ``plain``, requests name no pcloud. With ``automatic``, they name no
pcloud either, but half of the pclouds have automatic placement, and three of these belong to the
requesting project. With ``named``, each request names a pcloud.
"""


def measure(decisions: int, repetitions: int) -> Iterator[Figure]:
    """Measure medians by kind, and their ratios to the median without pclouds."""
    took: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for repetition in range(repetitions):
        tables = {kind: _table(kind) for kind in KINDS}
        for kind, table in tables.items():
            _decide(kind, table, random.Random(repetition), WARM_UPS)
        for block in range(decisions // BLOCK):
            for kind, table in tables.items():
                # Several decisions in a row, so that the table is in the processor's cache.
                dice = random.Random(f"{repetition} {block}")
                took[kind] += _decide(kind, table, dice, BLOCK)
    without = median(took["none"])
    for kind, singles in took.items():
        yield Figure(f"dedicated.{kind}.median", median(singles) * 1e6, "us")
        yield Figure(f"dedicated.{kind}.p99", percentile(singles, 99) * 1e6, "us")
        yield Figure(f"dedicated.{kind}.share", median(singles) / without, "of none")


def _decide(kind: str, table: HostTable, dice: random.Random, count: int) -> list[float]:
    found: list[float] = []
    for _ in range(count):
        spec = spec_of(dice, 1)
        if kind == "named":
            spec = replace(spec, pclouds=(_uuid(dice.randrange(PCLOUDS)),))
        else:
            spec = replace(spec, automatic_pclouds=table.dedications.automatic_of(MINE))
        found.append(once(table, spec))
    return found


def _uuid(number: int) -> str:
    return f"pcloud-{number}"


def _table(kind: str) -> HostTable:
    table = table_of(Fleet(HOSTS, allocations=9 * HOSTS))
    if kind == "none":
        return table
    for number in range(PCLOUDS):
        is_automatic = kind == "automatic" and number % 2 == 0
        is_mine = kind == "named" or number < 2 * MY_AUTOMATIC
        projects = {f"project-{number}", *([MINE] if is_mine else [])}
        taken_in = projects if is_automatic else ()
        table.dedications.set_facts(_uuid(number), projects, taken_in)
    for index in range(0, HOSTS, HOSTS // (PCLOUDS * OF_EACH)):
        number = index // 2 % PCLOUDS
        code = table.dedications.code(_uuid(number))
        table.dedicate(HostIndex(index), code, f"host-{index}", is_open=True)
    return table
