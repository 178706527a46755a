"""Routes of build plans; they are this program's own, at all versions."""

from __future__ import annotations

from innkeeper.entrypoints.api.checks import PROJECT
from innkeeper.entrypoints.api.compute.servers import list_schemas as server_list_schemas
from innkeeper.entrypoints.api.compute.servers import plain as servers_plain
from innkeeper.entrypoints.api.compute.servers import schemas as server_schemas
from innkeeper.entrypoints.api.routing import Route, Rule
from innkeeper.entrypoints.api.zones import plans

PLAN_ROUTES = (
    Route(
        "POST",
        "/v2.1/zones/select",
        plans.select,
        Rule("os_compute_api:zones:select", PROJECT, "Have servers planned, to be made later."),
        "Plan servers, and seal each one's place in an entry.",
        body=server_schemas.PLANNED,
        query=server_list_schemas.NOTHING,
        decode=servers_plain.decode,
        decode_since=servers_plain.SINCE,
    ),
)
