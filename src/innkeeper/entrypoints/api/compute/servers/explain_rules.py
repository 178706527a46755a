"""Policy rules of explanations and recordings."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.checks import ADMIN, PROJECT
from innkeeper.entrypoints.api.routing import Rule

_EXPLAIN = "os_compute_api:os-explain"

EXPLAIN_RULES = (
    Rule(f"{_EXPLAIN}:explain", PROJECT, "Ask where servers would go, or why nowhere."),
    Rule(f"{_EXPLAIN}:show", PROJECT, "Read how it was decided about a server."),
    Rule(f"{_EXPLAIN}:hosts", ADMIN, "Read the names of hosts in an explanation."),
    Rule(f"{_EXPLAIN}:record", ADMIN, "Record decisions, and read the recordings."),
)
