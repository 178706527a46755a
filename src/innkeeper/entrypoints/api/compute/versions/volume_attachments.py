"""The changes that microversions made to the volumes of servers."""

from __future__ import annotations

from typing import Any

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.compute.servers.volume_attachments import ATTACHED
from innkeeper.entrypoints.api.compute.versions.edges import SERVER
from innkeeper.entrypoints.api.edges import body_without, dropping, edges, resources
from innkeeper.entrypoints.api.microversions import Edge, Step
from innkeeper.entrypoints.api.routing import Answer, Call

ALL = f"{SERVER}/os-volume_attachments"
ONE = f"{ALL}/{{volume_id}}"
KEY = "volumeAttachment"
SHOWN = (("GET", ALL), ("GET", ONE), ("POST", ALL))

_attachments = resources("volumeAttachments", KEY)
_servers = resources("servers", "server")


def _bare_ids(answer: Answer, call: Call) -> None:
    for server in _servers(answer):
        if ATTACHED in server:
            server[ATTACHED] = [{"id": each["id"]} for each in server[ATTACHED]]


def _with_id(answer: Answer, call: Call) -> None:
    for each in _attachments(answer):
        each["id"] = each["volumeId"]
        for key in ("attachment_id", "bdm_uuid"):
            each.pop(key, None)


def _plain_update(schema: Any) -> Any:
    return body_without(KEY, "delete_on_termination", "device", "serverId", "id", "tag")(schema)


STEPS = (
    Step(
        Version(2, 3),
        "Servers show which volumes are deleted with them.",
        edges((("GET", "/v2.1/servers/detail"), ("GET", SERVER), ("PUT", SERVER)), down=_bare_ids),
    ),
    Step(
        Version(2, 49),
        "A volume can be attached with a tag.",
        (Edge("POST", ALL, body_before=body_without(KEY, "tag")),),
    ),
    Step(
        Version(2, 70),
        "Attachments of volumes show their tag.",
        edges(SHOWN, down=dropping(_attachments, "tag")),
    ),
    Step(
        Version(2, 79),
        "Attachments of volumes have `delete_on_termination`.",
        (
            Edge("POST", ALL, body_before=body_without(KEY, "delete_on_termination")),
            *edges(SHOWN, down=dropping(_attachments, "delete_on_termination")),
        ),
    ),
    Step(
        Version(2, 85),
        "`PUT .../os-volume_attachments/{id}` sets `delete_on_termination`.",
        (Edge("PUT", ONE, body_before=_plain_update),),
    ),
    Step(
        Version(2, 89),
        "Attachments of volumes show `attachment_id` and `bdm_uuid` instead of `id`.",
        edges((("GET", ALL), ("GET", ONE)), down=_with_id),
    ),
)
