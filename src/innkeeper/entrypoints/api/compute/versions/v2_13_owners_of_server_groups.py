"""2.13: server groups tell whose they are."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.grouping.server_groups import in_answer
from innkeeper.entrypoints.api.compute.versions.server_group_edges import wherever_shown
from innkeeper.entrypoints.api.microversions import Version
from innkeeper.entrypoints.api.routing import Answer, Call

VERSION = Version(2, 13)
SUMMARY = "Server groups show their projects and users."


def _drop(answer: Answer, call: Call) -> None:
    for group in in_answer(answer):
        del group["project_id"], group["user_id"]


EDGES = wherever_shown(_drop)
