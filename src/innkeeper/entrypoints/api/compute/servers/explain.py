"""Explanations of planned boots and past decisions, an API that only Innkeeper has.

Always true: an explanation claims nothing, and only administrators see the names of hosts.
"""

from __future__ import annotations

from typing import Any

from innkeeper.entrypoints.api.compute.servers.access import found_even_deleted
from innkeeper.entrypoints.api.compute.servers.bodies import checked_body
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.schema_types import TRUE_WORDS
from innkeeper.scheduling import explanation_values
from innkeeper.systems.compute.boot import decisions
from innkeeper.systems.compute.boot.dry_run import Explained, Question

HOSTS_RULE = "os_compute_api:os-explain:hosts"
RECORD_RULE = "os_compute_api:os-explain:record"


async def explain(call: Call) -> Answer:
    """Explain a body of ``POST /servers``. Raises the same errors for the body as a boot."""
    project_id = call.context.project_id
    host = call.last("host")
    if host is not None:
        call.demand(HOSTS_RULE, project_id=project_id)
    is_record_wanted = call.last("record") in TRUE_WORDS
    if is_record_wanted:
        call.demand(RECORD_RULE, project_id=project_id)
    _, request = await checked_body(call)
    question = Question(request, host, is_record_wanted)
    explained: Explained = await call.site.engine.explain(question)
    shown: dict[str, Any] = explanation_values.explanation(
        explained.explanation, are_hosts_named=call.allows(HOSTS_RULE, project_id=project_id)
    )
    if explained.recording is not None:
        shown["recording"] = await call.site.recordings.save(explained.recording)
    return Answer(200, {"explanation": shown})


async def show(call: Call) -> Answer:
    """Show the stored record of a server's placement decision."""
    server = await found_even_deleted(call)
    are_hosts_named = call.allows(HOSTS_RULE, project_id=server.project_id)
    told = await call.read(lambda tx: decisions.shown(tx, server, are_hosts_named=are_hosts_named))
    return Answer(200, {"explanation": told})


async def recordings(call: Call) -> Answer:
    """List the recordings of decisions."""
    there = await call.site.recordings.index()
    shown = [{"name": each.name, "size": each.size_bytes} for each in there]
    return Answer(200, {"recordings": shown})


async def recording(call: Call) -> Answer:
    """Download a recording, for `innkeeper replay`."""
    content = await call.site.recordings.read(call.params["name"])
    return Answer(200, content, {"content-type": "application/zip"})
