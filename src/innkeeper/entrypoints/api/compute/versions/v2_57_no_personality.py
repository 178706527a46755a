"""2.57: files are not put into servers at boot any more."""

from __future__ import annotations

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.compute.schema_types import closed
from innkeeper.entrypoints.api.compute.servers.schemas import with_others
from innkeeper.entrypoints.api.compute.versions import (
    v2_63_trusted_certificates,
)
from innkeeper.entrypoints.api.compute.versions.server_edges import wherever_booted
from innkeeper.entrypoints.api.microversions import Schema, Version
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(2, 57)
SUMMARY = "A boot has no personality files any more."
PERSONALITY: Schema = {
    "type": "array",
    "items": closed({"path": {"type": "string"}, "contents": {"type": "string"}}),
    "maxItems": 64,
}
CREATE_BEFORE = with_others(v2_63_trusted_certificates.CREATE_BEFORE, personality=PERSONALITY)


def _refuse_files(call: Call) -> None:
    # A server without the files that its owner counts on is worse than none.
    if call.body["server"].pop("personality", None):
        raise Invalid("Files are not injected here: use user_data instead of personality.")


EDGES = wherever_booted(CREATE_BEFORE, _refuse_files)
