"""These handlers list, show, create and delete server groups.

The servers of a group share one affinity policy.

Always true: the answer is the same 404 for a missing group and for a group that the caller may not
see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.errors import Invalid
from innkeeper.domain.grouping import ServerGroup
from innkeeper.domain.ids import ServerId
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.compute.accounts.quotas import default_limits
from innkeeper.entrypoints.api.paging import limit_of
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.accounts import quotas
from innkeeper.systems.compute.grouping import groups
from innkeeper.systems.pods import pod_groups

RULE = "os_compute_api:os-server-groups"
MAX_PER_HOST = "max_server_per_host"


async def index(call: Call) -> Answer:
    """List server groups."""
    project_id = call.context.project_id
    # As in Nova, all_projects is ignored if the caller may not use it.
    is_for_all = "all_projects" in call.query and call.allows(
        f"{RULE}:index:all_projects", project_id=project_id
    )
    offset = int(call.last("offset") or 0)
    # A limit of 0 means a full page.
    limit = limit_of(call) or call.site.settings.serving.page_size_max
    if project_id is None and not is_for_all:
        return Answer(200, {"server_groups": []})

    def read(tx: Tx) -> list[dict[str, Any]]:
        owner = None if is_for_all else project_id
        found, members = groups.page(tx, owner, limit=limit, offset=offset)
        in_pods = _in_pods(tx, call, found)
        return [
            _shown(each, (*members.get(each.id, ()), *in_pods.get(each.uuid, ()))) for each in found
        ]

    return Answer(200, {"server_groups": await call.read(read)})


def _in_pods(tx: Tx, call: Call, found: Sequence[ServerGroup]) -> Mapping[str, Sequence[ServerId]]:
    """Return these groups' servers in pods (clouds behind this service), by the id of the group."""
    if call.site.door is None:
        return {}
    in_pods = pod_groups.members(tx, [each.uuid for each in found])
    return {uuid: [ServerId(each) for each in members] for uuid, members in in_pods.items()}


async def show(call: Call) -> Answer:
    """Show a server group."""
    group, members = await _found(call)
    return Answer(200, {"server_group": _shown(group, members)})


async def create(call: Call) -> Answer:
    """Create an empty server group. Servers join a group only at boot."""
    project_id, user_id = call.context.project_id, call.context.user_id
    if project_id is None or user_id is None:
        raise Invalid(
            "A server group belongs to a project: use a token that is scoped to a project."
        )
    body = call.body["server_group"]
    group = ServerGroup(
        uuid=call.site.ids.uuid(),
        name=body["name"],
        project_id=project_id,
        user_id=user_id,
        policy=body["policy"],
        servers_per_host_max=_max_per_host(body.get("rules", {})),
        created_at=call.now,
    )

    def write(tx: Tx) -> ServerGroup:
        limits = quotas.limits(tx, project_id, default_limits(call))
        return groups.create(tx, group, limits.server_groups)

    return Answer(200, {"server_group": _shown(await call.write(write), ())})


def _max_per_host(rules: dict[str, Any]) -> int | None:
    if MAX_PER_HOST not in rules:
        return None
    # Clients may send the number as a string. The schema does not limit its value.
    value = int(rules[MAX_PER_HOST])
    if not 1 <= value <= UNIT_MAX:
        raise Invalid(
            f"Invalid input for field/attribute {MAX_PER_HOST}. Value: {value}. "
            f"{value} is not between 1 and {UNIT_MAX}"
        )
    return value


async def delete(call: Call) -> Answer:
    """Delete a server group, but not its servers."""
    group, _ = await _found(call)
    await call.write(lambda tx: groups.delete(tx, group.uuid))
    return Answer(204)


async def _found(call: Call) -> tuple[ServerGroup, Sequence[ServerId]]:
    group_id = call.params["group_id"]

    def read(tx: Tx) -> tuple[ServerGroup, Sequence[ServerId]]:
        group = groups.get(tx, group_id)
        in_pods = _in_pods(tx, call, [group]).get(group.uuid, ())
        return group, (*groups.members(tx, group), *in_pods)

    group, members = await call.read(read)
    if not call.allows(call.rule, project_id=group.project_id, user_id=group.user_id):
        raise groups.unknown(group_id)
    return group, members


def _shown(group: ServerGroup, members: Sequence[ServerId]) -> dict[str, Any]:
    max_per_host = group.servers_per_host_max
    return {
        "id": group.uuid,
        "name": group.name,
        "policy": group.policy,
        "rules": {} if max_per_host is None else {MAX_PER_HOST: max_per_host},
        "members": list(members),
        "project_id": group.project_id,
        "user_id": group.user_id,
    }
