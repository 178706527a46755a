"""2.51: owners are told the steps of what was done to their servers."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.instance_actions import EVENTS_RULE
from innkeeper.entrypoints.api.compute.versions.history_edges import ACTION
from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.routing import Answer, Call

VERSION = Version(2, 51)
SUMMARY = "Owners see the events of an action on their server."


def _for_administrators(answer: Answer, call: Call) -> None:
    if not call.allows(EVENTS_RULE, project_id=call.context.project_id):
        del answer.body["instanceAction"]["events"]


EDGES = (Edge("GET", ACTION, down=_for_administrators),)
