"""2.94: hostnames may be whole domain names."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.patterns import LABEL_PATTERN
from innkeeper.entrypoints.api.compute.servers.schemas import CREATE, UPDATE, with_others
from innkeeper.entrypoints.api.compute.versions.server_edges import ONE, wherever_booted
from innkeeper.entrypoints.api.microversions import Edge, Schema, Version

VERSION = Version(2, 94)
SUMMARY = "Hostnames may be whole domain names."
LABEL: Schema = {
    "type": "string",
    "minLength": 2,
    "maxLength": 63,
    "pattern": LABEL_PATTERN,
}
CREATE_BEFORE = with_others(CREATE, hostname=LABEL)
UPDATE_BEFORE = with_others(UPDATE, hostname=LABEL)
EDGES = (*wherever_booted(CREATE_BEFORE), Edge("PUT", ONE, body_before=UPDATE_BEFORE))
