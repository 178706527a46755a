"""Quota sets and limits: how much a project may have, and has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.compute import UNLIMITED, Limits
from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.schema_types import PROJECT_ID_MAX
from innkeeper.systems.compute.accounts import quotas
from innkeeper.systems.compute.grouping import groups

FIELDS = {
    "cores": "vcpus",
    "instances": "servers",
    "key_pairs": "keypairs",
    "metadata_items": "metadata_items",
    "ram": "memory_mb",
    "server_group_members": "server_group_members",
    "server_groups": "server_groups",
}
"""The API's words for limits, in the order in which it shows them, and ours."""
COUNTED = {"cores": "vcpus", "instances": "servers", "ram": "memory_mb"}
"""Those of which a project's servers use some."""
GROUPS = "server_groups"
TRUE_WORDS = (True, "True", "true", "1")
_RULE = "os_compute_api:os-quota-sets"


async def show(call: Call) -> Answer:
    """Show a project's quotas."""
    project_id = _project(call, "show")
    limits = await call.read(lambda tx: quotas.limits(tx, project_id, default_limits(call)))
    return Answer(200, {"quota_set": {"id": project_id, **_shown(limits)}})


async def detail(call: Call) -> Answer:
    """Show a project's quotas with what is used of them."""
    project_id = _project(call, "detail")
    limits, used = await call.read(lambda tx: _both(tx, call, project_id))
    return Answer(
        200,
        {
            "quota_set": {
                "id": project_id,
                **{
                    name: {"limit": limit, "in_use": used.get(name, 0), "reserved": 0}
                    for name, limit in _shown(limits).items()
                },
            }
        },
    )


async def defaults(call: Call) -> Answer:
    """Show the quotas of a project for which none were set."""
    body = {"id": call.params["project_id"], **_shown(default_limits(call))}
    return Answer(200, {"quota_set": body})


async def update(call: Call) -> Answer:
    """Set some of a project's quotas."""
    project_id = call.params["project_id"]
    if len(project_id) > PROJECT_ID_MAX:
        raise Invalid(f"A project's id has at most {PROJECT_ID_MAX} characters.")
    body = dict(call.body["quota_set"])
    is_forced = body.get("force") in TRUE_WORDS
    wanted = {name: _limit(name, body[name]) for name in FIELDS if name in body}

    def work(tx: Any) -> Limits:
        if not is_forced:
            _, used = _both(tx, call, project_id)
            _refuse_below(wanted, used)
        in_house = {FIELDS[name]: limit for name, limit in wanted.items()}
        return quotas.update(tx, project_id, in_house, default_limits(call))

    limits = await call.write(work)
    return Answer(200, {"quota_set": _shown(limits)})


async def delete(call: Call) -> Answer:
    """Go back to the defaults."""
    project_id = call.params["project_id"]
    await call.write(lambda tx: quotas.reset(tx, project_id))
    return Answer(202)


async def show_class(call: Call) -> Answer:
    """Show the defaults, which is what every class of quotas has."""
    body = {"id": call.params["class_id"], **_shown(default_limits(call))}
    return Answer(200, {"quota_class_set": body})


async def limits(call: Call) -> Answer:
    """Show what a project may have in all, and has."""
    project_id = call.last("tenant_id") or call.context.project_id or ""
    if project_id != call.context.project_id:
        call.demand("os_compute_api:limits:other_project", project_id=project_id)
    most, used = await call.read(lambda tx: _both(tx, call, project_id))
    absolute = {
        "maxTotalCores": most.vcpus,
        "maxTotalInstances": most.servers,
        "maxTotalKeypairs": most.keypairs,
        "maxServerMeta": most.metadata_items,
        "maxTotalRAMSize": most.memory_mb,
        "maxServerGroups": most.server_groups,
        "maxServerGroupMembers": most.server_group_members,
        "totalRAMUsed": used["ram"],
        "totalCoresUsed": used["cores"],
        "totalInstancesUsed": used["instances"],
        "totalServerGroupsUsed": used[GROUPS],
    }
    return Answer(200, {"limits": {"rate": [], "absolute": absolute}})


def put_into(answer: Answer, older: Mapping[str, int]) -> None:
    """Add quotas of older versions, in the form that the answer has; nothing uses them."""
    quota_set = answer.body.get("quota_set") or answer.body["quota_class_set"]
    is_detailed = isinstance(quota_set["cores"], dict)
    for name, limit in older.items():
        quota_set[name] = {"limit": limit, "in_use": 0, "reserved": 0} if is_detailed else limit


def default_limits(call: Call) -> Limits:
    """The limits of a project for which none were set."""
    return quotas.defaults(call.site.settings.computing)


def _project(call: Call, verb: str) -> str:
    project_id = call.params["project_id"]
    call.demand(f"{_RULE}:{verb}", project_id=project_id)
    return project_id


def _both(tx: Any, call: Call, project_id: str) -> tuple[Limits, dict[str, int]]:
    """What a project may have, and has, of what is counted by project; the other limits hold
    for a user, a server or a group."""
    used = quotas.used(tx, project_id)
    counted = {name: getattr(used, field) for name, field in COUNTED.items()}
    return (
        quotas.limits(tx, project_id, default_limits(call)),
        {**counted, GROUPS: groups.count(tx, project_id)},
    )


def _shown(limits: Limits) -> dict[str, int]:
    return {name: getattr(limits, field) for name, field in FIELDS.items()}


def _limit(name: str, value: int | str) -> int:
    # The schema bounds numbers only, and a number may come as a text.
    limit = int(value)
    if not UNLIMITED <= limit <= UNIT_MAX:
        raise Invalid(
            f"Invalid input for field/attribute {name}. Value: {value}. "
            f"{value} is not between -1 and {UNIT_MAX}"
        )
    return limit


def _refuse_below(wanted: dict[str, int], used: dict[str, int]) -> None:
    for name, limit in wanted.items():
        if limit != UNLIMITED and limit < used.get(name, 0):
            raise Invalid(
                f"Quota limit {limit} for {name} must be greater than or equal to already "
                f"used and reserved {used[name]}."
            )
