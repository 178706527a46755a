"""2.38: a listing refuses a status that does not exist, where it used to find nothing."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.states import WORDS
from innkeeper.entrypoints.api.compute.versions.server_edges import wherever_listed
from innkeeper.entrypoints.api.microversions import Version
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(2, 38)
SUMMARY = "A listing refuses a status that does not exist."
NOBODYS = "UNKNOWN"
"""A status that exists, and that no server here is in."""


def _find_nothing(call: Call) -> None:
    words = {text.upper() for text in call.query.get("status", ())}
    if words and not words & WORDS:
        call.query["status"] = [NOBODYS]


EDGES = wherever_listed(_find_nothing)
