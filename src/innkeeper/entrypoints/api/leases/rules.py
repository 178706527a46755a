"""Policy rules of the Reservation API, with the names that its operators know."""

from __future__ import annotations

from innkeeper.entrypoints.api.routing import Rule

LEASES, HOSTS = "blazar:leases", "blazar:oshosts"
ADMIN = "role:admin"
_WRITER = "role:member or role:service or not role:reader"
"""Everybody but those who may only look."""
PROJECT = "role:admin or project_id:%(project_id)s"
PROJECT_WRITER = f"role:admin or (project_id:%(project_id)s and ({_WRITER}))"

RULES = (
    Rule(f"{LEASES}:get", PROJECT, "List a project's leases, and show one."),
    Rule(f"{LEASES}:get:all_projects", ADMIN, "List the leases of all projects."),
    Rule(f"{LEASES}:post", PROJECT_WRITER, "Make a lease for one's project."),
    Rule(f"{LEASES}:put", PROJECT_WRITER, "Rename a lease."),
    Rule(f"{LEASES}:delete", PROJECT_WRITER, "End a lease."),
    Rule(f"{HOSTS}:get", ADMIN, "List the hosts that are kept for leases, and show one."),
    Rule(f"{HOSTS}:post", ADMIN, "Keep a host for leases."),
    Rule(f"{HOSTS}:delete", ADMIN, "Keep a host for leases no more."),
)
