"""Formats the results about leases as tables, and compares them with their targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from benchmarks.tables import Found, at_most, shown, table

KINDS = {
    "hosts": "2 to 4 whole hosts",
    "required": "2 to 4 hosts with 64 processors",
    "slots": "8 slots",
    "together": "8 slots on one host",
    "apart": "8 slots on 8 hosts",
}
REFUSED = {
    "hosts": "4,500 whole hosts",
    "slots": "9,000 large slots",
    "apart": "4,500 large slots, each on another host",
}
ASKED = {
    "hosts": "4 whole hosts",
    "slots": "8 slots",
    "together": "8 slots on one host",
    "window": "4 hosts, with the earliest day",
}
PAGES = {"own": "of one project", "all": "of all projects"}
REQUESTS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "create": ("a new lease of", KINDS),
    "refused": ("a refused lease of", REFUSED),
    "availability": ("30 days of", ASKED),
    "page": ("1,000 leases", PAGES),
}
BOOTS = {"plain": "plain", "hosts": "on reserved hosts", "slots": "in reserved slots"}

DECISION_MAX_MS = 5.0
REQUEST_MAX_MS = {"create": 30.0, "availability": 50.0, "page": 50.0}
BEGUN_MAX_S = 5.0
BOOT_MAX = 1.1
"""The maximum time of a boot into a reservation divided by that of a plain boot."""
TIMES = ("median", "busy")


def tables(found: Found) -> Sequence[str]:
    """Return the tables of all figures about leases."""
    return [_decisions(found), _requests(found), _boots(found), _events(found)]


def _decisions(found: Found) -> str:
    rows = [
        (each, *_times(found, f"leases.decision.{kind}", ".1f")) for kind, each in KINDS.items()
    ]
    rows += [
        (f"refused: {each}", *_times(found, f"leases.refusal.{kind}", ".1f"))
        for kind, each in REFUSED.items()
    ]
    return table(("decision", "median ms", "p99 ms", "processor ms"), rows)


def _requests(found: Found) -> str:
    rows = [
        (f"{what} {each}", *_times(found, f"leases.{name}.{kind}", ",.1f"))
        for name, (what, kinds) in REQUESTS.items()
        for kind, each in kinds.items()
    ]
    return table(("request", "median ms", "p99 ms", "processor ms"), rows)


def _times(found: Found, name: str, form: str) -> tuple[str, ...]:
    return tuple(shown(found, f"{name}.{each}", form) for each in ("median", "p99", "busy"))


def _boots(found: Found) -> str:
    rows = [
        (
            each,
            shown(found, f"leases.boot.{kind}.median", ".2f"),
            shown(found, f"leases.boot.{kind}.share", ".3f"),
            shown(found, f"leases.boot.{kind}.busy", ".2f"),
            shown(found, f"leases.boot.{kind}.busy_share", ".3f"),
        )
        for kind, each in BOOTS.items()
    ]
    return table(("boot", "median ms", "/ plain", "processor ms", "/ plain"), rows)


def _events(found: Found) -> str:
    row = (
        shown(found, "leases.events.count", ",.0f"),
        shown(found, "leases.events.begun", ".1f"),
        shown(found, "leases.events.active", ".1f"),
        shown(found, "leases.events.busy", ".1f"),
        shown(found, "leases.start", ".1f"),
        shown(found, "leases.memory", ".0f"),
    )
    names = ("leases due at once", "all begun, s", "all active, s", "processor, ms per lease")
    return table((*names, "start to ready, s", "resident, MB"), [row])


def targets(found: Found) -> Iterable[str]:
    """Yield each target about leases, its result, and whether the result meets it."""
    for kind in KINDS:
        for time in TIMES:
            yield from at_most(found, f"leases.decision.{kind}.{time}", DECISION_MAX_MS)
    for name, most in REQUEST_MAX_MS.items():
        for kind in REQUESTS[name][1]:
            for time in TIMES:
                yield from at_most(found, f"leases.{name}.{kind}.{time}", most)
    yield from at_most(found, "leases.events.begun", BEGUN_MAX_S)
    for kind in ("hosts", "slots"):
        for share in ("share", "busy_share"):
            yield from at_most(found, f"leases.boot.{kind}.{share}", BOOT_MAX)
