"""2.92: keypairs are imported only, and their names may have dots and at signs."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.accounts.schemas import CREATE_KEYPAIR_BEFORE_2_92
from innkeeper.entrypoints.api.microversions import Edge, Version

VERSION = Version(2, 92)
SUMMARY = "Keypairs are imported only; their names may have dots and at signs."
EDGES = (Edge("POST", "/v2.1/os-keypairs", body_before=CREATE_KEYPAIR_BEFORE_2_92),)
