"""2.65: a live migration can be aborted before it runs."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.migrations import WHILE_IT_RUNS
from innkeeper.entrypoints.api.compute.versions.history_edges import MIGRATION
from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(2, 65)
SUMMARY = "A live migration can be aborted before it runs."


def _while_it_runs(call: Call) -> None:
    call.terms.add(WHILE_IT_RUNS)


EDGES = (Edge("DELETE", MIGRATION, up=_while_it_runs),)
