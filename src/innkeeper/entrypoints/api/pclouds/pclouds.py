"""Pclouds: a project's sets of whole hosts, and the projects that may use them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from innkeeper.domain.errors import Forbidden, Invalid, NotFound
from innkeeper.domain.pclouds import Pcloud, PcloudAction, SizePolicy, consenting
from innkeeper.engine.retry import WHOLE_HOSTS
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.paging import limit_of, next_query
from innkeeper.entrypoints.api.pclouds.calling import (
    LINES_OF_A_HOST,
    PCLOUDS,
    context,
    demand_owned,
    let_out,
    moment,
    owned,
    project,
    seen,
    used,
)
from innkeeper.entrypoints.api.pclouds.ratio_rollout import bring_over
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
"""The API's words for what an owner says of a pcloud, and ours."""
RATIOS = frozenset({"cpu_ratio", "ram_ratio"})
WORDS = {field: word for word, field in FIELDS.items()}


async def index(call: Call) -> Answer:
    """List the pclouds that a project owns or may use."""
    limit, mine = limit_of(call), call.context.project_id
    sees_all = "all_projects" in call.query and call.allows(f"{PCLOUDS}:index:all_projects")
    if mine is None and not sees_all:
        return Answer(200, {"pclouds": []})

    def read(tx: Tx) -> list[dict[str, Any]]:
        found = pclouds.page(
            tx,
            viewer=None if sees_all else mine,
            after=call.last("marker"),
            limit=limit + 1,
            project_id=call.last("project_id"),
            name=call.last("name"),
        )
        return _all_shown(tx, call, found)

    found = await call.read(read)
    body: dict[str, Any] = {"pclouds": found[:limit]}
    if len(found) > limit > 0:
        query = next_query(call, found[limit - 1]["id"])
        body["pclouds_links"] = [{"rel": "next", "href": f"{call.address}{PATH}?{query}"}]
    return Answer(200, body)


async def show(call: Call) -> Answer:
    """Show a pcloud: all of it to its owner, its name to who may use it."""

    def read(tx: Tx) -> dict[str, Any]:
        return _one_shown(tx, call, seen(tx, call))

    return Answer(200, {"pcloud": await call.read(read)})


async def create(call: Call) -> Answer:
    """Make a pcloud without hosts."""
    project_id, uuid, told = project(call), call.site.ids.uuid(), context(call)
    facts = _facts(call.body["pcloud"])

    def write(tx: Tx) -> dict[str, Any]:
        return _one_shown(tx, call, pclouds.create(tx, uuid, project_id, facts, told))

    return Answer(201, {"pcloud": await call.write(write, retry=WHOLE_HOSTS)})


async def update(call: Call) -> Answer:
    """Rename a pcloud, or change its ratios, its size or whether it is used unasked."""
    facts, told = _facts(call.body["pcloud"]), context(call)

    def write(tx: Tx) -> tuple[str, int, dict[str, Any]]:
        after = pclouds.update(tx, owned(tx, call), facts, told)
        left = ratio_rollout.left(tx, [after]).get(after.id, 0)
        return after.uuid, left, _one_shown(tx, call, after)

    lines = ROLLED_OUT_AT_ONCE * LINES_OF_A_HOST if RATIOS & facts.keys() else 1
    uuid, left, before = await call.write(write, lines, WHOLE_HOSTS)
    shown = before
    if left:
        await bring_over(call, uuid, left)
        shown = await call.read(lambda tx: _shown_again(tx, call, before))
    return Answer(200, {"pcloud": shown})


def _shown_again(tx: Tx, call: Call, before: dict[str, Any]) -> dict[str, Any]:
    try:
        return _one_shown(tx, call, owned(tx, call))
    except (NotFound, Forbidden):
        # It got another owner meanwhile, or is gone. What was shown before was true then.
        return before


async def delete(call: Call) -> Answer:
    """Forget a pcloud without hosts; with ``force`` also one that shelved servers name."""
    told, is_forced = context(call), call.last("force") in TRUE_WORDS
    await call.write(
        lambda tx: pclouds.delete(tx, owned(tx, call), told, is_forced=is_forced), retry=WHOLE_HOSTS
    )
    return Answer(204)


# -- who may use it ----------------------------------------------------------------------------


async def tenants(call: Call) -> Answer:
    """List the projects that may use a pcloud."""

    def read(tx: Tx) -> list[str]:
        found = owned(tx, call)
        return list(pclouds.projects(tx, [found]).get(found.id, {}))

    return Answer(200, {"tenants": await call.read(read)})


async def authorize(call: Call) -> Answer:
    """Let a project use a pcloud."""
    return await _of_project(call, owned, pclouds.authorize)


async def drop(call: Call) -> Answer:
    """Let no new server of a project come to a pcloud: one's guest's, or one's own."""
    return await _of_project(call, let_out, pclouds.drop)


async def accept(call: Call) -> Answer:
    """Let a project's requests that name no pcloud come to one that takes such."""
    return await _of_project(call, used, pclouds.accept)


async def decline(call: Call) -> Answer:
    """Let no new request of a project come that names no pcloud."""
    return await _of_project(call, used, pclouds.decline)


async def _of_project(
    call: Call,
    find: Callable[[Tx, Call], Pcloud],
    act: Callable[[Tx, Pcloud, str, PcloudContext], None],
) -> Answer:
    """Do something about the project in the path, for who may have it done."""
    told, project_id = context(call), call.params["tenant_id"]
    await call.write(lambda tx: act(tx, find(tx, call), project_id, told), retry=WHOLE_HOSTS)
    return Answer(204)


# -- what was done -----------------------------------------------------------------------------


async def actions(call: Call) -> Answer:
    """List what was done to a pcloud while the project that asks owned it, the newest first."""
    limit, marker = limit_of(call), call.last("marker")
    before = None if marker is None else int(marker)
    sees_all = call.allows(f"{PCLOUDS}:index:all_projects")

    def read(tx: Tx) -> list[PcloudAction]:
        uuid, owner_id = _readable(tx, call)
        # What a former owner did, and had done, is none of the next one's business.
        whose = None if sees_all else owner_id
        return pclouds.actions(tx, uuid, before=before, limit=limit + 1, owner_id=whose)

    found = await call.read(read)
    listed = [_action_shown(call, each, sees_all=sees_all) for each in found[:limit]]
    body: dict[str, Any] = {"actions": listed}
    if len(found) > limit > 0:
        path = f"{call.address}{PATH}/{call.params['pcloud_id']}/actions"
        query = next_query(call, str(found[limit - 1].id))
        body["actions_links"] = [{"rel": "next", "href": f"{path}?{query}"}]
    return Answer(200, body)


def _action_shown(call: Call, done: PcloudAction, *, sees_all: bool) -> dict[str, Any]:
    # The members of guests, and administrators, are not an owner's to know.
    known = {call.context.project_id, done.owner_id} - {None}
    shows_who = sees_all or done.project_id in known
    return {
        "id": done.id,
        "action": done.action,
        "host": done.host_name,
        "detail": _detail(done),
        "project_id": done.project_id if shows_who else None,
        "user_id": done.user_id if shows_who else None,
        "request_id": done.request_id,
        "created_at": moment(done.created_at),
    }


def _readable(tx: Tx, call: Call) -> tuple[str, str | None]:
    """The pcloud that the path names, and its owner, if the caller may read what was done.

    Of one that is gone whoever owned it last may, and none of its guests.
    """
    named = call.params["pcloud_id"]
    found = pclouds.get_or_none(tx, named)
    if found is not None:
        demand_owned(tx, call, found)
        return found.uuid, found.project_id
    last = pclouds.last_action(tx, named)
    if last is None or not _was_owned(call, last.owner_id):
        raise pclouds.unknown(named)
    return last.pcloud_uuid, last.owner_id


def _was_owned(call: Call, owner_id: str | None) -> bool:
    if owner_id is None:
        # An older program did not write it down: for those only who may read of all of them.
        return call.allows(f"{PCLOUDS}:index:all_projects")
    return call.allows(f"{PCLOUDS}:actions", project_id=owner_id)


def _detail(done: PcloudAction) -> str | None:
    if done.action != "update" or done.detail is None:
        return done.detail
    # What was changed is written in our words.
    return ", ".join(sorted(WORDS.get(field, field) for field in done.detail.split(", ")))


# -- words -------------------------------------------------------------------------------------


def _facts(body: dict[str, Any]) -> dict[str, Any]:
    facts = {FIELDS[word]: value for word, value in body.items()}
    if facts.get("size") is not None:
        facts["size"] = _size(facts["size"])
    return facts


def _size(wanted: dict[str, Any]) -> SizePolicy:
    made = SizePolicy(
        hosts_min=wanted.get("min_hosts", 0),
        hosts_max=wanted["max_hosts"],
        host_flavor=wanted["host_flavor"],
        availability_zone=wanted.get("availability_zone"),
        idle_s=wanted.get("release_after_idle_s"),
        vcpus_min=wanted.get("min_free_vcpus", 1),
    )
    if made.hosts_min > made.hosts_max:
        raise Invalid("min_hosts is greater than max_hosts.")
    return made


def _one_shown(tx: Tx, call: Call, found: Pcloud) -> dict[str, Any]:
    (shown,) = _all_shown(tx, call, [found])
    return shown


def _all_shown(tx: Tx, call: Call, found: list[Pcloud]) -> list[dict[str, Any]]:
    projects = pclouds.projects(tx, found)
    # Who may use one need not know who pays for it, who else uses it, and how large it is.
    show = f"{PCLOUDS}:show"
    whole = [each for each in found if call.allows(show, project_id=each.project_id)]
    counts, left = pclouds.host_counts(tx, whole), ratio_rollout.left(tx, whole)
    rest = {
        each.id: {
            "owner": each.project_id,
            "tenants": list(projects.get(each.id, {})),
            "host_count": counts.get(each.id, 0),
            "hosts_settling": left.get(each.id, 0),
            **_shown_facts(each),
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


def _shown_facts(pcloud: Pcloud) -> dict[str, Any]:
    return {
        "cpu_allocation_ratio": pcloud.cpu_ratio,
        "ram_allocation_ratio": pcloud.ram_ratio,
        "size_policy": _shown_size(pcloud.size),
        "created_at": moment(pcloud.created_at),
        "updated_at": moment(pcloud.updated_at),
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
