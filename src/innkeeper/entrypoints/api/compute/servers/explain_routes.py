"""Routes of explanations, and of the recordings that can be replayed."""

from __future__ import annotations

from typing import Any

from innkeeper.entrypoints.api.checks import ADMIN, PROJECT
from innkeeper.entrypoints.api.compute.servers import explain
from innkeeper.entrypoints.api.compute.servers import list_schemas as server_list_schemas
from innkeeper.entrypoints.api.compute.servers import plain as servers_plain
from innkeeper.entrypoints.api.compute.servers import schemas as server_schemas
from innkeeper.entrypoints.api.microversions import Schema
from innkeeper.entrypoints.api.routing import Route, Rule

_RULE = "os_compute_api:os-explain"


def _one(schema: Any) -> Schema:
    """A parameter that is given once at most."""
    return {"type": "array", "items": schema, "maxItems": 1}


_QUESTION: Schema = {
    "type": "object",
    "properties": {"host": _one(server_schemas.WORD), "record": _one(server_schemas.BOOLEAN)},
    "additionalProperties": False,
}

_RECORD = Rule(f"{_RULE}:record", ADMIN, "Record decisions, and read the recordings.")

EXPLAIN_ROUTES = (
    Route(
        "POST",
        "/v2.1/os-explain",
        explain.explain,
        Rule(f"{_RULE}:explain", PROJECT, "Ask where servers would go, or why nowhere."),
        "Tell where a boot would go, or why nowhere.",
        body=server_schemas.PLANNED,
        query=_QUESTION,
        decode=servers_plain.decode,
    ),
    Route(
        "GET",
        "/v2.1/servers/{server_id}/os-explain",
        explain.show,
        Rule(f"{_RULE}:show", PROJECT, "Read how it was decided about a server."),
        "Tell how it was decided about a server.",
        query=server_list_schemas.NOTHING,
    ),
    Route(
        "GET",
        "/v2.1/os-recordings",
        explain.recordings,
        _RECORD,
        "List the recorded decisions.",
        query=server_list_schemas.NOTHING,
    ),
    Route(
        "GET",
        "/v2.1/os-recordings/{name}",
        explain.recording,
        _RECORD,
        "Give a recorded decision, to be replayed.",
        query=server_list_schemas.NOTHING,
    ),
)
