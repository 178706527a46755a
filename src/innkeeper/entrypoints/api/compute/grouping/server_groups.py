"""Server groups: which servers should be together, and which apart.

Always true: a stranger's group looks like one that does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
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

RULE = "os_compute_api:os-server-groups"
MOST = "max_server_per_host"


def in_answer(answer: Answer) -> list[dict[str, Any]]:
    """The groups in an answer, one or many, for those who lower it to an older version."""
    body = answer.body
    found: list[dict[str, Any]]
    found = body["server_groups"] if "server_groups" in body else [body["server_group"]]
    return found


async def index(call: Call) -> Answer:
    """List the groups of a project, or of all for those who may ask for them."""
    project_id = call.context.project_id
    # Who may not see those of all gets his own, as clients are used to.
    wants_all = "all_projects" in call.query
    is_for_all = wants_all and call.allows(f"{RULE}:index:all_projects", project_id=project_id)
    offset = int(call.last("offset") or 0)
    # No limit and 0 mean the same here: as many as one page holds.
    limit = limit_of(call) or call.site.settings.serving.page_size_max
    if project_id is None and not is_for_all:
        return Answer(200, {"server_groups": []})
    found, members = await call.read(
        lambda tx: groups.page(tx, None if is_for_all else project_id, limit=limit, offset=offset)
    )
    shown = [_shown(each, members.get(each.id, ())) for each in found]
    return Answer(200, {"server_groups": shown})


async def show(call: Call) -> Answer:
    """Show a group with the servers in it."""
    group, members = await _found(call)
    return Answer(200, {"server_group": _shown(group, members)})


async def create(call: Call) -> Answer:
    """Make a group; servers come into it when they are booted."""
    project_id, user_id = call.context.project_id, call.context.user_id
    if project_id is None or user_id is None:
        raise Invalid("Server groups belong to a project; the token names none.")
    body = call.body["server_group"]
    wanted = ServerGroup(
        uuid=call.site.ids.uuid(),
        name=body["name"],
        project_id=project_id,
        user_id=user_id,
        policy=body["policy"],
        servers_per_host_max=_most(body.get("rules", {})),
        created_at=call.now,
    )

    def write(tx: Tx) -> ServerGroup:
        limits = quotas.limits(tx, project_id, default_limits(call))
        return groups.create(tx, wanted, limits.server_groups)

    return Answer(200, {"server_group": _shown(await call.write(write), ())})


def _most(rules: dict[str, Any]) -> int | None:
    if MOST not in rules:
        return None
    # The schema bounds numbers only, and a number may come as a text.
    most = int(rules[MOST])
    if not 1 <= most <= UNIT_MAX:
        raise Invalid(
            f"Invalid input for field/attribute {MOST}. Value: {most}. "
            f"{most} is not between 1 and {UNIT_MAX}"
        )
    return most


async def delete(call: Call) -> Answer:
    """Delete a group; the servers in it stay."""
    group, _ = await _found(call)
    await call.write(lambda tx: groups.delete(tx, group.uuid))
    return Answer(204)


async def _found(call: Call) -> tuple[ServerGroup, Sequence[ServerId]]:
    named, rule = call.params["group_id"], call.rule

    def read(tx: Tx) -> tuple[ServerGroup, Sequence[ServerId]]:
        group = groups.get(tx, named)
        return group, groups.members(tx, group)

    group, members = await call.read(read)
    if not call.allows(rule, project_id=group.project_id, user_id=group.user_id):
        raise groups.unknown(named)
    return group, members


def _shown(group: ServerGroup, members: Sequence[ServerId]) -> dict[str, Any]:
    most = group.servers_per_host_max
    return {
        "id": group.uuid,
        "name": group.name,
        "policy": group.policy,
        "rules": {} if most is None else {MOST: most},
        "members": list(members),
        "project_id": group.project_id,
        "user_id": group.user_id,
    }
