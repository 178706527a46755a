"""The changes that microversions made to actions on servers, which share one route."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.compute.servers.action_schemas import (
    EVACUATE,
    HOST,
    HOST_OR_NULL,
    IGNORED,
    MIGRATE_LIVE,
    PASSWORD,
)
from innkeeper.entrypoints.api.compute.servers.moves import MoveOptions
from innkeeper.entrypoints.api.compute.servers.passwords import made_password
from innkeeper.entrypoints.api.compute.servers.schemas import BOOLEAN
from innkeeper.entrypoints.api.compute.versions.edges import SERVER
from innkeeper.entrypoints.api.edges import Before, Down, Up
from innkeeper.entrypoints.api.microversions import Edge, Schema, Step
from innkeeper.entrypoints.api.options import with_options
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.schema_types import NAME, TRUE_WORDS, closed

UNSHELVE_INTO_ZONE: Schema = {
    **closed({"availability_zone": NAME}, ("availability_zone",)),
    "type": ["object", "null"],
}
EVACUATE_WITH_STORAGE = closed(
    {"host": HOST, "onSharedStorage": BOOLEAN, "adminPass": PASSWORD}, ("onSharedStorage",)
)
MIGRATE_LIVE_OVER_COMMIT = closed(
    {"block_migration": BOOLEAN, "disk_over_commit": BOOLEAN, "host": HOST_OR_NULL},
    ("block_migration", "disk_over_commit", "host"),
)


@dataclass(frozen=True, slots=True)
class EvacuationOptions:
    """Options of evacuations that only microversions before 2.14 set."""

    shows_password: bool = False
    """Whether the answer shows the server's password."""
    keeps_disks: bool = False
    """Whether the disks are on shared storage, so that the server keeps its password."""


def acted(
    *, body_before: Before | None = None, up: Up | None = None, down: Down | None = None
) -> tuple[Edge, ...]:
    """Return a microversion's changes to the route of server actions."""
    edge = Edge("POST", f"{SERVER}/action", body_before=body_before, up=up, down=down)
    return (edge,)


def _with(actions: Mapping[str, Schema]) -> Before:
    """Return a function that replaces the schemas of these actions with their older schemas."""

    def before(schema: Schema) -> Schema:
        known = schema["properties"]
        assert actions.keys() <= known.keys(), "only existing actions can be replaced"
        return {**schema, "properties": {**known, **actions}}

    return before


def _forcible(schema: Schema) -> Schema:
    return {**schema, "properties": {**schema["properties"], "force": BOOLEAN}}


def _without_arguments(name: str) -> Up:
    """Return an upgrade that removes an action's arguments, because older versions ignored them."""

    def up(call: Call) -> None:
        if name in call.body:
            call.body[name] = None

    return up


def _forces_named_host(name: str) -> Up:
    """Return an upgrade that adds ``force`` to an action with a requested host.

    Older versions did not check the host.
    """

    def up(call: Call) -> None:
        arguments = call.body.get(name, {})
        if arguments.get("host"):
            arguments["force"] = True

    return up


def _read_storage(call: Call) -> None:
    arguments = call.body.get("evacuate")
    if arguments is None:
        return
    is_shared = arguments.pop("onSharedStorage") in TRUE_WORDS
    if is_shared and "adminPass" in arguments:
        raise Invalid("admin password can't be changed on existing disk")
    call.options.set(EvacuationOptions, shows_password=True, keeps_disks=is_shared)


def _show_password(answer: Answer, call: Call) -> None:
    options = call.options.of(EvacuationOptions)
    if options.keeps_disks:
        answer.body = {"adminPass": None}
    elif options.shows_password:
        requested = call.body["evacuate"].get("adminPass")
        answer.body = {"adminPass": requested or made_password(call.site.ids)}


def _drop_over_commit(call: Call) -> None:
    # Allocation ratios, not clients, decide whether disks are overcommitted.
    call.body.get("os-migrateLive", {}).pop("disk_over_commit", None)


def _pop_force(arguments: dict[str, Any]) -> bool:
    is_forced = arguments.pop("force", False) in TRUE_WORDS
    if is_forced and not arguments.get("host"):
        raise Invalid("Can't force to a non-provided destination")
    return is_forced


def _by_force(call: Call) -> None:
    for name in ("evacuate", "os-migrateLive"):
        if name in call.body and _pop_force(call.body[name]):
            call.options.set(MoveOptions, is_forced=True)


STEPS = (
    Step(
        Version(2, 14),
        "A request to evacuate no longer says whether disks are shared. "
        "The answer no longer has a password.",
        acted(
            body_before=_with({"evacuate": EVACUATE_WITH_STORAGE}),
            up=_read_storage,
            down=_show_password,
        ),
    ),
    Step(
        Version(2, 25),
        "In a live migration, `block_migration` may be `auto`. `disk_over_commit` is removed.",
        acted(
            body_before=_with({"os-migrateLive": MIGRATE_LIVE_OVER_COMMIT}), up=_drop_over_commit
        ),
    ),
    Step(
        Version(2, 29),
        "The requested host of an evacuation is checked, unless `force` is true.",
        acted(body_before=_with({"evacuate": EVACUATE}), up=_forces_named_host("evacuate")),
    ),
    Step(
        Version(2, 30),
        "The requested host of a live migration is checked, unless `force` is true.",
        acted(
            body_before=_with({"os-migrateLive": MIGRATE_LIVE}),
            up=_forces_named_host("os-migrateLive"),
        ),
    ),
    Step(
        Version(2, 34),
        "A live migration is accepted even if no host is valid. The server's actions show the "
        "error.",
        acted(up=with_options(MoveOptions, waits_for_host=True)),
    ),
    Step(
        Version(2, 56),
        "A cold migration may request a host.",
        acted(body_before=_with({"migrate": IGNORED}), up=_without_arguments("migrate")),
    ),
    Step(
        Version(2, 68),
        "Evacuations and live migrations can no longer be forced.",
        acted(
            body_before=_with(
                {"evacuate": _forcible(EVACUATE), "os-migrateLive": _forcible(MIGRATE_LIVE)}
            ),
            up=_by_force,
        ),
    ),
    Step(
        Version(2, 73),
        "Locks have a reason.",
        acted(body_before=_with({"lock": IGNORED}), up=_without_arguments("lock")),
    ),
    Step(
        Version(2, 77),
        "A server can be unshelved into another availability zone.",
        acted(body_before=_with({"unshelve": IGNORED}), up=_without_arguments("unshelve")),
    ),
    Step(
        Version(2, 91),
        "A server can be unshelved to a given host. Its pin to a zone can be removed.",
        acted(body_before=_with({"unshelve": UNSHELVE_INTO_ZONE})),
    ),
    Step(
        Version(2, 95),
        "An evacuated server is shut off until it is started. Before 2.95, it kept its "
        "power state.",
        acted(up=with_options(MoveOptions, is_started=True)),
    ),
)
