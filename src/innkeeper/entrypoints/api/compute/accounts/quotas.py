"""These handlers show and set a project's quotas, and show the usage of the quotas.

The Compute API shows quotas as quota sets and as limits.
"""

from __future__ import annotations

from collections.abc import Mapping

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.compute import UNLIMITED
from innkeeper.domain.door import SERVER
from innkeeper.domain.errors import Invalid
from innkeeper.domain.limits import Limits
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.schema_types import PROJECT_ID_MAX
from innkeeper.systems.compute.accounts import quotas
from innkeeper.systems.compute.grouping import groups
from innkeeper.systems.pods import routings

FIELDS = {
    "cores": "vcpus",
    "instances": "servers",
    "key_pairs": "keypairs",
    "metadata_items": "metadata_items",
    "ram": "memory_mb",
    "server_group_members": "server_group_members",
    "server_groups": "server_groups",
}
"""The fields of :class:`Limits`. The keys are the API's names of the quotas, in the API's order."""
COUNTED = {"cores": "vcpus", "instances": "servers", "ram": "memory_mb"}
"""Quotas whose usage is summed over a project's servers."""
GROUPS = "server_groups"
TRUE_WORDS = (True, "True", "true", "1")
_RULE = "os_compute_api:os-quota-sets"


async def show(call: Call) -> Answer:
    """Show a project's quotas."""
    project_id = _project(call, "show")
    limits = await call.read(lambda tx: quotas.limits(tx, project_id, default_limits(call)))
    return Answer(200, {"quota_set": {"id": project_id, **_shown(limits)}})


async def detail(call: Call) -> Answer:
    """Show a project's quotas and their usage."""
    project_id = _project(call, "detail")
    limits, used = await call.read(lambda tx: _both(tx, call, project_id))
    quota_set = {
        name: {"limit": limit, "in_use": used.get(name, 0), "reserved": 0}
        for name, limit in _shown(limits).items()
    }
    return Answer(200, {"quota_set": {"id": project_id, **quota_set}})


async def defaults(call: Call) -> Answer:
    """Show the default quotas."""
    body = {"id": call.params["project_id"], **_shown(default_limits(call))}
    return Answer(200, {"quota_set": body})


async def update(call: Call) -> Answer:
    """Set a project's quotas."""
    project_id = call.params["project_id"]
    if len(project_id) > PROJECT_ID_MAX:
        raise Invalid(
            f"The project id is too long: it can have at most {PROJECT_ID_MAX} characters."
        )
    body = call.body["quota_set"]
    is_forced = body.get("force") in TRUE_WORDS
    requested = {name: _limit(name, body[name]) for name in FIELDS if name in body}

    def work(tx: Tx) -> Limits:
        if not is_forced:
            _, used = _both(tx, call, project_id)
            _reject_below(requested, used)
        values = {FIELDS[name]: limit for name, limit in requested.items()}
        return quotas.update(tx, project_id, values, default_limits(call))

    limits = await call.write(work)
    return Answer(200, {"quota_set": _shown(limits)})


async def delete(call: Call) -> Answer:
    """Reset a project's quotas to the defaults."""
    project_id = call.params["project_id"]
    await call.write(lambda tx: quotas.reset(tx, project_id))
    return Answer(202)


async def show_class(call: Call) -> Answer:
    """Show a quota class. Every class has the default quotas."""
    body = {"id": call.params["class_id"], **_shown(default_limits(call))}
    return Answer(200, {"quota_class_set": body})


async def limits(call: Call) -> Answer:
    """Show a project's limits and their usage."""
    project_id = call.last("tenant_id") or call.context.project_id or ""
    if project_id != call.context.project_id:
        call.demand("os_compute_api:limits:other_project", project_id=project_id)
    maxima, used = await call.read(lambda tx: _both(tx, call, project_id))
    absolute = {
        "maxTotalCores": maxima.vcpus,
        "maxTotalInstances": maxima.servers,
        "maxTotalKeypairs": maxima.keypairs,
        "maxServerMeta": maxima.metadata_items,
        "maxTotalRAMSize": maxima.memory_mb,
        "maxServerGroups": maxima.server_groups,
        "maxServerGroupMembers": maxima.server_group_members,
        "totalRAMUsed": used["ram"],
        "totalCoresUsed": used["cores"],
        "totalInstancesUsed": used["instances"],
        "totalServerGroupsUsed": used[GROUPS],
    }
    return Answer(200, {"limits": {"rate": [], "absolute": absolute}})


def put_into(answer: Answer, older: Mapping[str, int]) -> None:
    """Add to an answer the quotas that only older versions have, with a usage of 0."""
    quota_set = answer.body.get("quota_set") or answer.body["quota_class_set"]
    is_detailed = isinstance(quota_set["cores"], dict)
    for name, limit in older.items():
        quota_set[name] = {"limit": limit, "in_use": 0, "reserved": 0} if is_detailed else limit


def default_limits(call: Call) -> Limits:
    """Return the default limits of a project."""
    return quotas.defaults(call.site.settings.computing)


def _project(call: Call, verb: str) -> str:
    project_id = call.params["project_id"]
    call.demand(f"{_RULE}:{verb}", project_id=project_id)
    return project_id


def _both(tx: Tx, call: Call, project_id: str) -> tuple[Limits, dict[str, int]]:
    """Return a project's limits, and its usage of the quotas that are counted per project."""
    used = quotas.used(tx, project_id)
    counted = {name: getattr(used, field) for name, field in COUNTED.items()}
    if call.site.door is not None:
        servers, vcpus, memory_mb, _ = routings.used(tx, project_id, SERVER)
        counted["instances"] += servers
        counted["cores"] += vcpus
        counted["ram"] += memory_mb
    counted[GROUPS] = groups.count(tx, project_id)
    return quotas.limits(tx, project_id, default_limits(call)), counted


def _shown(limits: Limits) -> dict[str, int]:
    return {name: getattr(limits, field) for name, field in FIELDS.items()}


def _limit(name: str, value: int | str) -> int:
    # Clients may send the number as a string. The schema does not limit its value.
    limit = int(value)
    if not UNLIMITED <= limit <= UNIT_MAX:
        raise Invalid(
            f"Invalid input for field/attribute {name}. Value: {value}. "
            f"{value} is not between -1 and {UNIT_MAX}"
        )
    return limit


def _reject_below(requested: dict[str, int], used: dict[str, int]) -> None:
    for name, limit in requested.items():
        if limit != UNLIMITED and limit < used.get(name, 0):
            raise Invalid(
                f"Quota limit {limit} for {name} must be greater than or equal to already "
                f"used and reserved {used[name]}."
            )
