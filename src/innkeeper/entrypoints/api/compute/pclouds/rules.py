"""Policy rules of host flavors and pclouds."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.checks import ADMIN, ANYBODY, PROJECT, PROJECT_WRITER
from innkeeper.entrypoints.api.compute.pclouds.calling import FLAVORS, PCLOUDS
from innkeeper.entrypoints.api.compute.pclouds.records import QUOTAS
from innkeeper.entrypoints.api.routing import Rule

PCLOUD_RULES = (
    Rule(f"{FLAVORS}:index", ANYBODY, "List host flavors."),
    Rule(f"{FLAVORS}:show", ANYBODY, "Show a host flavor."),
    Rule(f"{FLAVORS}:create", ADMIN, "Define a host flavor."),
    Rule(f"{FLAVORS}:update", ADMIN, "Change a host flavor."),
    Rule(f"{FLAVORS}:delete", ADMIN, "Delete a host flavor without hosts."),
    Rule(f"{FLAVORS}:pool", ADMIN, "See which hosts are in a host flavor's pool."),
    Rule(f"{FLAVORS}:add_host", ADMIN, "Put a host into a host flavor's pool."),
    Rule(f"{FLAVORS}:update_host", ADMIN, "Say that a host of a pool is in maintenance."),
    Rule(f"{FLAVORS}:remove_host", ADMIN, "Take a host out of a host flavor's pool."),
    Rule(f"{PCLOUDS}:index", PROJECT, "List pclouds that a project owns or may use."),
    Rule(f"{PCLOUDS}:index:all_projects", ADMIN, "List the pclouds of all projects."),
    Rule(f"{PCLOUDS}:create", PROJECT_WRITER, "Create a pcloud."),
    Rule(f"{PCLOUDS}:show", PROJECT, "Show all of a pcloud."),
    Rule(f"{PCLOUDS}:update", PROJECT_WRITER, "Change a pcloud."),
    Rule(f"{PCLOUDS}:delete", PROJECT_WRITER, "Delete a pcloud without hosts."),
    Rule(f"{PCLOUDS}:hosts:index", PROJECT, "List a pcloud's hosts and their servers."),
    Rule(f"{PCLOUDS}:hosts:show", PROJECT, "Show a pcloud's host and its servers."),
    Rule(f"{PCLOUDS}:hosts:allocate", PROJECT_WRITER, "Take hosts into a pcloud."),
    Rule(f"{PCLOUDS}:hosts:update", PROJECT_WRITER, "Enable, disable or rename a host."),
    Rule(f"{PCLOUDS}:hosts:replace", PROJECT_WRITER, "Replace a broken host."),
    Rule(f"{PCLOUDS}:hosts:release", PROJECT_WRITER, "Give a host back."),
    Rule(f"{PCLOUDS}:tenants:index", PROJECT, "List the projects that may use a pcloud."),
    Rule(f"{PCLOUDS}:tenants:authorize", PROJECT_WRITER, "Let a project use a pcloud."),
    Rule(
        f"{PCLOUDS}:tenants:drop",
        PROJECT_WRITER,
        "Let a project use a pcloud no more, or leave one as that project.",
    ),
    Rule(
        f"{PCLOUDS}:tenants:accept",
        PROJECT_WRITER,
        "Let a project's requests come that name no pcloud.",
    ),
    Rule(
        f"{PCLOUDS}:tenants:decline",
        PROJECT_WRITER,
        "Let no more of a project's requests come that name no pcloud.",
    ),
    Rule(f"{PCLOUDS}:actions", PROJECT, "List what was done to a pcloud."),
    Rule(f"{PCLOUDS}:usage", PROJECT, "Report the hours of a project's whole hosts."),
    Rule(f"{PCLOUDS}:usage:all_projects", ADMIN, "Report the hours of all projects."),
    Rule(f"{QUOTAS}:show", PROJECT, "Show a project's quota of units."),
    Rule(f"{QUOTAS}:update", ADMIN, "Set a project's quota of units."),
    Rule(f"{QUOTAS}:delete", ADMIN, "Reset a project's quota of units."),
)
