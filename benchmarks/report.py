"""Formats the results of a run as Markdown tables for a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks import agent_report, door_report, lease_report, zone_report
from benchmarks.deciding import Case
from benchmarks.machine import Machine
from benchmarks.several_processes import figure_name
from benchmarks.tables import Found, at_most, shown, table, verdict

RATIO_MIN = 0.4
RATIO_OF = "boot.10000.16"
"""The kind of boots whose ratio to empty requests has a target: at 10,000 hosts, by 16 clients."""
TAIL_MAX = 8.0
"""The maximum of a boot's 99th percentile divided by its median."""
DECISIONS_MAX_US = {10_000: 60.0, 100_000: 600.0}
PASSES_MAX = 3.0
"""The maximum time of a decision divided by that of a plain pass over the columns."""
EXPLAINED_MAX = 1.1
"""The maximum time of a boot with a short record of its decision divided by that without a
record."""
TOGETHER_AT = 10_000
TOGETHER_MAX_MS = {"decision.%d.of_1000": 30.0, "together.%d.median": 400.0}
LOAD_AT = 100_000
LOAD_MAX = {"load.%d.read": 5.0, "memory.%d.start": 600.0}
CLAIMS_MIN = 1_500.0
SEARCH_AT = 10_000
SEARCH_MAX_MS = {"1": 2.0, "1000": 15.0}
"""The maximum median, in ms, of a search for candidates among flat providers, by the limit."""
CONFLICTS_AT = 10_000
CONFLICTS_MAX = 1.0
"""The maximum percentage of conflicts among writes through several processes."""

DEDICATED = {
    "none": "none",
    "plain": "500, none named",
    "automatic": "500, none named, half automatic",
    "named": "500, one named",
}
DEDICATED_MAX = 1.1
"""The maximum time of a decision with 500 pclouds divided by that of one without pclouds."""

BEGIN = "<!-- figures: make bench writes them -->"
END = "<!-- end of the figures -->"


def head(machine: Machine, database: Mapping[str, str], command: str) -> str:
    """Describe the machine, the program and the command of the figures."""
    libraries = ", ".join(f"{name} {version}" for name, version in machine.libraries.items())
    settings = ", ".join(f"{name}={value}" for name, value in database.items())
    return "\n".join(
        (
            f"command    {command}",
            f"commit     {machine.commit}",
            f"machine    {machine.cpu}, {machine.cores} cores, {machine.memory_gb} GB, "
            f"{machine.system}; shared by clients, service and database",
            f"python     {machine.python}; {libraries}",
            f"database   SQLite {machine.sqlite}: {settings} (synchronous=2 is FULL: the log "
            "is flushed at every commit)",
            f"disk       {machine.flush_us:.0f} us to write 8 KiB and flush it",
        )
    )


def deciding(found: Found, cases: Iterable[Case]) -> str:
    """Return the table of decisions inside the process."""
    rows = [
        (
            case.label,
            shown(found, f"{case.name}.median", ".0f"),
            shown(found, f"{case.name}.p99", ".0f"),
            shown(found, f"{case.name}.plain.median", ".0f"),
            shown(found, f"{case.name}.of_1000", ".1f"),
        )
        for case in cases
    ]
    names = ("hosts", "median us", "p99 us", "plain pass us", "1,000 servers at once, ms")
    return table(names, rows)


def dedicating(found: Found, variants: Iterable[str]) -> str:
    """Return the table of decisions with and without pclouds."""
    rows = [
        (
            DEDICATED[wanted],
            shown(found, f"dedicated.{wanted}.median", ".0f"),
            shown(found, f"dedicated.{wanted}.p99", ".0f"),
            shown(found, f"dedicated.{wanted}.share", ".3f"),
        )
        for wanted in variants
    ]
    return table(("pclouds", "median us", "p99 us", "time / none"), rows)


def together(found: Found, hosts: Iterable[int]) -> str:
    """Return the table of single requests for 1,000 servers, from request to answer."""
    rows = [
        (
            f"{each:,}",
            shown(found, f"together.{each}.median", ",.0f"),
            shown(found, f"together.{each}.longest", ",.0f"),
        )
        for each in hosts
    ]
    return table(("hosts", "median ms", "longest ms"), rows)


def explaining(found: Found, hosts: int) -> str:
    """Return the table of boots with and without recorded decisions."""
    rows = [
        (
            wanted,
            shown(found, f"explanations.{hosts}.{wanted}.rate", ",.0f"),
            shown(found, f"explanations.{hosts}.{wanted}.busy", ".0f"),
            shown(found, f"explanations.{hosts}.{wanted}.share", ".3f"),
        )
        for wanted in ("off", "brief", "full")
    ]
    return table(("`explain_decisions`", "boots/s", "processor, us per boot", "time / off"), rows)


def loading(found: Found, hosts: int) -> str:
    """Return the table of reading the host table, and of starting."""
    rows = [
        (
            f"{hosts:,}",
            f"{10 * hosts:,}",
            shown(found, f"load.{hosts}.read", ".2f"),
            shown(found, f"load.{hosts}.start", ".2f"),
            shown(found, f"memory.{hosts}.start", ".0f"),
        )
    ]
    names = ("hosts", "allocations", "reading, s", "start to ready, s", "resident, MB")
    return table(names, rows)


def serving(
    found: Found,
    kind: str,
    hosts: Iterable[int],
    clients: Sequence[int],
    words: tuple[str, str] = ("hosts", "boots/s"),
) -> str:
    """Return the table of requests over HTTP.

    ``words`` are the names of two columns: the size of the setup, and the rate.
    """
    rows = [
        (
            f"{each:,}",
            str(count),
            shown(found, f"empty.{each}.{count}.{kind}.rate", ",.0f"),
            shown(found, f"empty.{each}.{count}.{kind}.median", ".2f"),
            shown(found, f"empty.{each}.{count}.{kind}.p99", ".2f"),
            shown(found, f"empty.{each}.{count}.{kind}.busy", ",.0f"),
            shown(found, f"{kind}.{each}.{count}.rate", ",.0f"),
            shown(found, f"{kind}.{each}.{count}.median", ".2f"),
            shown(found, f"{kind}.{each}.{count}.p99", ".2f"),
            shown(found, f"{kind}.{each}.{count}.busy", ",.0f"),
            shown(found, f"{kind}.{each}.{count}.ratio", ".2f"),
        )
        for each in hosts
        for count in clients
    ]
    latencies = ("median ms", "p99 ms", "processor us")
    names = (words[0], "clients", "empty/s", *latencies, words[1], *latencies, "ratio")
    return table(names, rows)


VOLUMES = {
    "empty": "empty POST",
    "servers": "POST /servers",
    "volumes": "POST /volumes",
    "mixed": "both in turns",
}


def volume_claims(found: Found, clients: Sequence[int]) -> str:
    """Return the table of creates of volumes, compared with boots."""
    rows = [
        (
            str(count),
            word,
            shown(found, f"volumes.{kind}.{count}.rate", ",.0f"),
            shown(found, f"volumes.{kind}.{count}.median", ".2f"),
            shown(found, f"volumes.{kind}.{count}.p99", ".2f"),
            shown(found, f"volumes.{kind}.{count}.busy", ",.0f"),
            "" if kind == "empty" else shown(found, f"volumes.{kind}.{count}.ratio", ".2f"),
        )
        for count in clients
        for kind, word in VOLUMES.items()
    ]
    names = ("clients", "requests", "per s", "median ms", "p99 ms", "processor us", "ratio")
    return table(names, rows)


def searching(
    found: Found, shapes: Iterable[str], hosts: Sequence[int], limits: Sequence[str]
) -> str:
    """Return the table of searches for allocation candidates over HTTP."""
    rows = [
        (
            shape,
            f"{each:,}",
            limit,
            shown(found, f"candidates.{shape}.{each}.{limit}.median", ",.2f"),
            shown(found, f"candidates.{shape}.{each}.{limit}.p99", ",.2f"),
            shown(found, f"candidates.{shape}.{each}.{limit}.size", ",.1f"),
        )
        for shape in shapes
        for each in hosts
        for limit in limits
    ]
    return table(("providers", "hosts", "limit", "median ms", "p99 ms", "answer, kB"), rows)


def reading(found: Found, shapes: Iterable[str], hosts: Sequence[int]) -> str:
    """Return the table of the first searches, which read all providers, and of the memory."""
    rows = [
        (
            shape,
            f"{each:,}",
            shown(found, f"candidates.{shape}.{each}.first", ".2f"),
            shown(found, f"memory.{each}.{shape}.after", ".0f"),
        )
        for shape in shapes
        for each in hosts
    ]
    return table(("providers", "hosts", "first search, s", "resident after, MB"), rows)


def servers(versions: Iterable[str], flush_us: float) -> str:
    """Describe the database servers of the figures."""
    return "\n".join(
        (
            "```text",
            f"servers    {'; '.join(versions)}",
            "galera     three nodes on this machine; one of them takes all writes",
            f"disk       {flush_us:.0f} us to write 8 KiB and flush it where they lie",
            "```",
        )
    )


def several(found: Found, kind: str, rows: Iterable[tuple[str, int, int, int]]) -> str:
    """Return the table of one kind of request, by database, hosts, clients and processes."""
    made = [
        (
            server,
            f"{hosts:,}",
            str(clients),
            str(processes),
            shown(found, f"{name}.empty.rate", ",.0f"),
            shown(found, f"{name}.{kind}.rate", ",.0f"),
            shown(found, f"{name}.{kind}.median", ".1f"),
            shown(found, f"{name}.{kind}.p99", ".1f"),
            shown(found, f"{name}.{kind}.ratio", ".2f"),
            shown(found, f"{name}.{kind}.steps", ".1f"),
            shown(found, f"{name}.{kind}.conflicts", ".2f"),
            shown(found, f"{name}.{kind}.busy", ",.0f"),
            shown(found, f"{name}.{kind}.leader", ",.0f"),
        )
        for server, hosts, clients, processes in rows
        for name in [figure_name(server, hosts, processes, clients)]
    ]
    names = ("database", "hosts", "clients", "processes", "empty/s", f"{kind}s/s")
    more = ("median ms", "p99 ms", "ratio", f"{kind}s per commit", "conflicts, %")
    return table((*names, *more, "processor us", "of the leader"), made)


def memory(found: Found, kind: str, hosts: Iterable[int]) -> str:
    """Return the table of the service's resident memory before and after the runs."""
    rows = [
        (
            f"{each:,}",
            shown(found, f"memory.{each}.{kind}.before", ".0f"),
            shown(found, f"memory.{each}.{kind}.after", ".0f"),
        )
        for each in hosts
    ]
    return table(("hosts", "resident before, MB", "after, MB"), rows)


def targets(found: Found) -> Iterable[str]:
    """Yield each target, its result, and whether the result meets it."""
    yield from _boots(found)
    for hosts, most in DECISIONS_MAX_US.items():
        yield from at_most(found, f"decision.{hosts}.median", most)
        yield from at_most(
            found, f"decision.{hosts}.median", PASSES_MAX, f"decision.{hosts}.plain.median"
        )
    for name, most in TOGETHER_MAX_MS.items():
        yield from at_most(found, name % TOGETHER_AT, most)
    yield from at_most(found, f"explanations.{TOGETHER_AT}.brief.share", EXPLAINED_MAX)
    for wanted in ("plain", "named"):
        yield from at_most(found, f"dedicated.{wanted}.share", DEDICATED_MAX)
    yield from lease_report.targets(found)
    for name, most in LOAD_MAX.items():
        yield from at_most(found, name % LOAD_AT, most)
    rates = [each for each in found.values() if each.name.startswith("claim.")]
    rates = [each for each in rates if each.name.endswith(".rate")]
    if rates:
        best = max(rates, key=lambda each: each.value)
        is_met = best.value >= CLAIMS_MIN
        yield verdict(f"claims per second {best.name}", best.value, CLAIMS_MIN, is_met)
    for limit, most in SEARCH_MAX_MS.items():
        search = found.get(f"candidates.flat.{SEARCH_AT}.{limit}.median")
        if search is not None:
            what = f"ms per search at {SEARCH_AT:,} flat hosts, limit {limit}"
            yield verdict(what, search.value, most, search.value <= most)
    yield from _conflicts(found)
    yield from agent_report.targets(found)
    yield from zone_report.targets(found)
    yield from door_report.targets(found)


def _conflicts(found: Found) -> Iterable[str]:
    shares = [
        each
        for name, each in found.items()
        if name.startswith("several.") and f".{CONFLICTS_AT}." in name
        if name.endswith(".conflicts")
    ]
    if shares:
        worst = max(shares, key=lambda each: each.value)
        what = f"{worst.name}, the most of all, {worst.unit}"
        yield verdict(what, worst.value, CONFLICTS_MAX, worst.value <= CONFLICTS_MAX)


def _boots(found: Found) -> Iterable[str]:
    ratio = found.get(f"{RATIO_OF}.ratio")
    if ratio is not None:
        yield verdict(ratio.name, ratio.value, RATIO_MIN, ratio.value >= RATIO_MIN)
    yield from at_most(found, f"{RATIO_OF}.p99", TAIL_MAX, f"{RATIO_OF}.median")


def put_into(page: Path, blocks: Sequence[str]) -> None:
    """Replace the text between the marks of a page with these blocks."""
    before, mark, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, other_mark, after = rest.partition(END)
    if not (mark and other_mark):
        raise ValueError(f"{page} has no marks for the figures.")
    text = "\n\n".join((before + BEGIN, *blocks, END + after))
    page.write_text(text, encoding="utf-8")
