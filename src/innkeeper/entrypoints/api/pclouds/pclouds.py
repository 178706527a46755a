"""Handlers of pclouds. A pcloud is a set of whole hosts that one project owns.

The owner can grant other projects access to the pcloud.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from innkeeper.domain.errors import Forbidden, Invalid, NotFound
from innkeeper.domain.pclouds import Pcloud, PcloudAction, SizePolicy, consenting
from innkeeper.engine.retry import WHOLE_HOSTS
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.paging import limit_of, next_link
from innkeeper.entrypoints.api.pclouds.calling import (
    LINES_OF_A_HOST,
    PCLOUDS,
    context,
    demand_owned,
    let_out,
    moment,
    owned,
    seen,
    used,
)
from innkeeper.entrypoints.api.pclouds.ratio_rollout import roll_out
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.schema_types import TRUE_WORDS
from innkeeper.systems.pclouds import pclouds, ratio_rollout
from innkeeper.systems.pclouds.context import PcloudContext
from innkeeper.systems.pclouds.ratio_rollout import ROLLED_OUT_AT_ONCE

PATH = "/v2.1/os-pclouds"
FIELDS = {
    "name": "name",
    "cpu_allocation_ratio": "cpu_ratio",
    "ram_allocation_ratio": "ram_ratio",
    "auto_placement": "is_automatic",
    "size_policy": "size",
}
"""The stored names of the properties of a pcloud, by the name in the API."""
RATIOS = frozenset({"cpu_ratio", "ram_ratio"})
WORDS = {field: word for word, field in FIELDS.items()}


async def index(call: Call) -> Answer:
    """List the pclouds that a project owns or may use."""
    limit, project_id = limit_of(call), call.context.project_id
    sees_all = "all_projects" in call.query and call.allows(f"{PCLOUDS}:index:all_projects")
    if project_id is None and not sees_all:
        return Answer(200, {"pclouds": []})

    def read(tx: Tx) -> list[dict[str, Any]]:
        found = pclouds.page(
            tx,
            viewer=None if sees_all else project_id,
            after=call.last("marker"),
            limit=limit + 1,
            project_id=call.last("project_id"),
            name=call.last("name"),
        )
        return _all_shown(tx, call, found)

    found = await call.read(read)
    link = next_link(call, "pclouds", found, limit, lambda each: each["id"])
    return Answer(200, {"pclouds": found[:limit], **link})


async def show(call: Call) -> Answer:
    """Show a pcloud. Projects that may use it see fewer details than its owner."""
    shown = await call.read(lambda tx: _one_shown(tx, call, seen(tx, call)))
    return Answer(200, {"pcloud": shown})


async def create(call: Call) -> Answer:
    """Create a pcloud without hosts."""
    project_id = call.context.project_id
    if project_id is None:
        raise Invalid("The creation of a pcloud requires a token for a project.")
    uuid, ctx, facts = call.site.ids.uuid(), context(call), _facts(call.body["pcloud"])

    def write(tx: Tx) -> dict[str, Any]:
        return _one_shown(tx, call, pclouds.create(tx, uuid, project_id, facts, ctx))

    return Answer(201, {"pcloud": await call.write(write, retry=WHOLE_HOSTS)})


async def update(call: Call) -> Answer:
    """Change a pcloud's name, ratios, size policy or automatic placement."""
    facts, ctx = _facts(call.body["pcloud"]), context(call)

    def write(tx: Tx) -> tuple[str, int, dict[str, Any]]:
        after = pclouds.update(tx, owned(tx, call), facts, ctx)
        remaining = ratio_rollout.left(tx, [after]).get(after.id, 0)
        return after.uuid, remaining, _one_shown(tx, call, after)

    lines = ROLLED_OUT_AT_ONCE * LINES_OF_A_HOST if RATIOS & facts.keys() else 1
    uuid, remaining, shown = await call.write(write, lines, WHOLE_HOSTS)
    if remaining:
        await roll_out(call, uuid, remaining)
        # Another request may have transferred or deleted the pcloud in the meantime.
        with suppress(NotFound, Forbidden):
            shown = await call.read(lambda tx: _one_shown(tx, call, owned(tx, call)))
    return Answer(200, {"pcloud": shown})


async def delete(call: Call) -> Answer:
    """Delete a pcloud without hosts.

    With the parameter ``force``, the pcloud is deleted even if shelved servers refer to it.
    """
    ctx, is_forced = context(call), call.last("force") in TRUE_WORDS
    await call.write(
        lambda tx: pclouds.delete(tx, owned(tx, call), ctx, is_forced=is_forced), retry=WHOLE_HOSTS
    )
    return Answer(204)


async def tenants(call: Call) -> Answer:
    """List the projects that may use a pcloud."""

    def read(tx: Tx) -> list[str]:
        found = owned(tx, call)
        return list(pclouds.projects(tx, [found]).get(found.id, {}))

    return Answer(200, {"tenants": await call.read(read)})


async def authorize(call: Call) -> Answer:
    """Grant a project access to a pcloud."""
    return await _of_project(call, owned, pclouds.authorize)


async def drop(call: Call) -> Answer:
    """Revoke a project's access to a pcloud. The project's servers in the pcloud are kept."""
    return await _of_project(call, let_out, pclouds.drop)


async def accept(call: Call) -> Answer:
    """Accept automatic placement of a project's new servers in a pcloud."""
    return await _of_project(call, used, pclouds.accept)


async def decline(call: Call) -> Answer:
    """Decline automatic placement of a project's new servers in a pcloud."""
    return await _of_project(call, used, pclouds.decline)


async def _of_project(
    call: Call,
    find: Callable[[Tx, Call], Pcloud],
    act: Callable[[Tx, Pcloud, str, PcloudContext], None],
) -> Answer:
    ctx, project_id = context(call), call.params["tenant_id"]
    await call.write(lambda tx: act(tx, find(tx, call), project_id, ctx), retry=WHOLE_HOSTS)
    return Answer(204)


async def actions(call: Call) -> Answer:
    """List the actions on a pcloud, newest first. Owners see no actions of earlier owners."""
    limit, marker = limit_of(call), call.last("marker")
    before = None if marker is None else int(marker)
    sees_all = call.allows(f"{PCLOUDS}:index:all_projects")

    def read(tx: Tx) -> list[PcloudAction]:
        uuid, owner_id = _readable(tx, call)
        # An owner does not see actions from before it owned the pcloud.
        viewer = None if sees_all else owner_id
        return pclouds.actions(tx, uuid, before=before, limit=limit + 1, owner_id=viewer)

    found = await call.read(read)
    shown = [_action_shown(call, each, sees_all=sees_all) for each in found[:limit]]
    link = next_link(call, "actions", found, limit, lambda each: each.id)
    return Answer(200, {"actions": shown, **link})


def _action_shown(call: Call, done: PcloudAction, *, sees_all: bool) -> dict[str, Any]:
    # An owner does not see the ids of guests' users and of administrators.
    known = {call.context.project_id, done.owner_id} - {None}
    shows_actor = sees_all or done.project_id in known
    return {
        "id": done.id,
        "action": done.action,
        "host": done.host_name,
        "detail": _detail(done),
        "project_id": done.project_id if shows_actor else None,
        "user_id": done.user_id if shows_actor else None,
        "request_id": done.request_id,
        "created_at": moment(done.created_at),
    }


def _readable(tx: Tx, call: Call) -> tuple[str, str | None]:
    """Return the pcloud in the path and its owner. Raises if the caller may not read its actions.

    If the pcloud is deleted, its last owner may read its actions.
    """
    pcloud_id = call.params["pcloud_id"]
    found = pclouds.get_or_none(tx, pcloud_id)
    if found is not None:
        demand_owned(tx, call, found)
        return found.uuid, found.project_id
    last = pclouds.last_action(tx, pcloud_id)
    if last is None or not _was_owned(call, last.owner_id):
        raise pclouds.unknown(pcloud_id)
    return last.pcloud_uuid, last.owner_id


def _was_owned(call: Call, owner_id: str | None) -> bool:
    if owner_id is None:
        # Older versions recorded no owner. Only callers that may see all pclouds can read these
        # actions.
        return call.allows(f"{PCLOUDS}:index:all_projects")
    return call.allows(f"{PCLOUDS}:actions", project_id=owner_id)


def _detail(done: PcloudAction) -> str | None:
    if done.action != "update" or done.detail is None:
        return done.detail
    # The detail consists of the stored names of the changed properties.
    return ", ".join(sorted(WORDS.get(field, field) for field in done.detail.split(", ")))


def _facts(body: dict[str, Any]) -> dict[str, Any]:
    facts = {FIELDS[word]: value for word, value in body.items()}
    if facts.get("size") is not None:
        facts["size"] = _size(facts["size"])
    return facts


def _size(body: dict[str, Any]) -> SizePolicy:
    size = SizePolicy(
        hosts_min=body.get("min_hosts", 0),
        hosts_max=body["max_hosts"],
        host_flavor=body["host_flavor"],
        availability_zone=body.get("availability_zone"),
        idle_s=body.get("release_after_idle_s"),
        vcpus_min=body.get("min_free_vcpus", 1),
    )
    if size.hosts_min > size.hosts_max:
        raise Invalid("min_hosts is greater than max_hosts.")
    return size


def _one_shown(tx: Tx, call: Call, found: Pcloud) -> dict[str, Any]:
    (shown,) = _all_shown(tx, call, [found])
    return shown


def _all_shown(tx: Tx, call: Call, found: list[Pcloud]) -> list[dict[str, Any]]:
    projects = pclouds.projects(tx, found)
    # A guest sees only the id, the name and the automatic placement.
    show = f"{PCLOUDS}:show"
    whole = [each for each in found if call.allows(show, project_id=each.project_id)]
    counts, rolling_out = pclouds.host_counts(tx, whole), ratio_rollout.left(tx, whole)
    rest = {
        each.id: {
            "owner": each.project_id,
            "tenants": list(projects.get(each.id, {})),
            "host_count": counts.get(each.id, 0),
            "hosts_settling": rolling_out.get(each.id, 0),
            "cpu_allocation_ratio": each.cpu_ratio,
            "ram_allocation_ratio": each.ram_ratio,
            "size_policy": _shown_size(each.size),
            "created_at": moment(each.created_at),
            "updated_at": moment(each.updated_at),
        }
        for each in whole
    }
    return [
        {**_shown_to_all(call, each, projects.get(each.id, {})), **rest.get(each.id, {})}
        for each in found
    ]


def _shown_to_all(call: Call, pcloud: Pcloud, projects: Mapping[str, bool]) -> dict[str, Any]:
    willing = consenting(pcloud.project_id, projects)
    return {
        "id": pcloud.uuid,
        "name": pcloud.name,
        "auto_placement": pcloud.is_automatic,
        "auto_placement_accepted": call.context.project_id in willing,
    }


def _shown_size(size: SizePolicy | None) -> dict[str, Any] | None:
    if size is None:
        return None
    return {
        "min_hosts": size.hosts_min,
        "max_hosts": size.hosts_max,
        "host_flavor": size.host_flavor,
        "availability_zone": size.availability_zone,
        "release_after_idle_s": size.idle_s,
        "min_free_vcpus": size.vcpus_min,
    }
