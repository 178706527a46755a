"""Manage pclouds, and the projects that may use them.

Source: the design *Whole Host Allocation*, from "Pclouds" on.

Always true: if a project may not see a pcloud, the pcloud seems not to exist. The owner of a new
pcloud may use the pcloud. An owner that gives up this right still owns the pcloud.

The host table contains the projects that may use a pcloud, and the requests that the pcloud
accepts. If these projects or requests change, the change feed gets rows for the pcloud's hosts, so
that all processes read the hosts again.

A project's consent to automatic placement ends when the pcloud gets another owner, and when the
project may no longer use the pcloud.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from innkeeper.domain.compute import UNLIMITED
from innkeeper.domain.errors import Conflict, InUse, NotFound, QuotaExceeded
from innkeeper.domain.ids import canonical_uuid
from innkeeper.domain.pclouds import PCLOUD_KIND, Pcloud, PcloudAction, consenting
from innkeeper.store import changes
from innkeeper.store.queries.pclouds import actions as pcloud_actions
from innkeeper.store.queries.pclouds import hosts as pcloud_hosts
from innkeeper.store.queries.pclouds import pclouds
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import owned_aggregates
from innkeeper.systems.compute.moves import dedicated_hosts
from innkeeper.systems.compute.moves.dedicated_hosts import Stranded
from innkeeper.systems.pclouds import (
    aggregates,
    host_flavors,
    members,
    paging,
    quotas,
    ratio_rollout,
)
from innkeeper.systems.pclouds.context import PcloudContext
from innkeeper.systems.pclouds.ratio_rollout import ROLLED_OUT_AT_ONCE

# A query that is re-exported unchanged.
by_aggregates = pclouds.by_aggregates

FACTS = frozenset({"name", "cpu_ratio", "ram_ratio", "is_automatic", "size"})
"""The fields of a pcloud that its owner may set."""
LISTED_MAX = 5
"""The maximum number of the caller's own servers that an error message lists."""
OWN_CHOICES: Mapping[str, Any] = MappingProxyType({"is_automatic": False, "size": None})
"""The fields that are reset when a pcloud gets another owner, with their new values. With other
values, the pcloud could take servers or add hosts at the new owner's expense, without the new
owner's consent."""


def unknown(uuid: str) -> NotFound:
    """Return the error for a pcloud that does not exist or that the caller may not see."""
    return NotFound(f"Pcloud {uuid} could not be found.")


def get(tx: Tx, uuid: str) -> Pcloud:
    """Return the pcloud with this id. Raises :class:`NotFound`."""
    found = get_or_none(tx, uuid)
    if found is None:
        raise unknown(uuid)
    return found


def get_or_none(tx: Tx, uuid: str) -> Pcloud | None:
    canonical = canonical_uuid(uuid)
    return None if canonical is None else pclouds.by_uuid(tx, canonical)


def page(
    tx: Tx,
    *,
    viewer: str | None,
    after: str | None,
    limit: int,
    project_id: str | None = None,
    name: str | None = None,
) -> list[Pcloud]:
    """Return a page of pclouds in the order of creation, after ``after``.

    ``viewer`` is the calling project, which sees the pclouds that it owns or may use. A viewer of
    ``None`` sees all pclouds.
    """
    row = 0
    if after is not None:
        row = paging.marked(after, lambda: _seen(tx, after, viewer)).id
    if viewer is not None and project_id not in (None, viewer):
        # The viewer must not learn which projects own other pclouds.
        return []
    return pclouds.page(tx, viewer=viewer, after=row, limit=limit, project_id=project_id, name=name)


def _seen(tx: Tx, uuid: str, viewer: str | None) -> Pcloud:
    found = get(tx, uuid)
    if viewer not in (None, found.project_id) and not may_use(tx, found, viewer):
        raise unknown(uuid)
    return found


def host_counts(tx: Tx, found: list[Pcloud]) -> dict[int, int]:
    """Return the number of hosts of each of these pclouds, by the pclouds' row ids."""
    return pcloud_hosts.counts(tx, [each.id for each in found])


def create(
    tx: Tx, uuid: str, project_id: str, facts: Mapping[str, Any], context: PcloudContext
) -> Pcloud:
    """Create a pcloud without hosts. Its owner may place servers on it.

    Raises :class:`Invalid` for an invalid project. Raises :class:`NotFound` if the size policy
    names an unknown host flavor. Raises :class:`QuotaExceeded`.
    """
    _demand_owner(tx, project_id, context)
    _demand_size(tx, facts)
    row = owned_aggregates.create(tx, uuid, aggregates.pcloud_name(uuid), PCLOUD_KIND, context.now)
    whole = {"cpu_ratio": None, "ram_ratio": None, "is_automatic": False, "size": None, **facts}
    assert whole.keys() == FACTS, "a pcloud has a name and no unknown fields"
    pclouds.add(tx, uuid, row, project_id, whole, context.now)
    pcloud = get(tx, uuid)
    pclouds.add_project(tx, pcloud.id, project_id)
    members.record(tx, pcloud, "create", context)
    return pcloud


def _demand_owner(tx: Tx, project_id: str, context: PcloudContext) -> None:
    aggregates.demand_project(project_id)
    aggregates.demand_known(tx, project_id, context)
    _demand_room(pclouds.count(tx, project_id), context.settings.quota_pclouds, "pclouds")


def _demand_room(count: int, most: int, of: str) -> None:
    if most != UNLIMITED and count >= most:
        raise QuotaExceeded(f"Quota exceeded, too many {of}: there are {count} of {most}.")


def _demand_size(tx: Tx, facts: Mapping[str, Any]) -> None:
    size = facts.get("size")
    if size is not None:
        host_flavors.get(tx, size.host_flavor)


def update(
    tx: Tx,
    pcloud: Pcloud,
    facts: Mapping[str, Any],
    context: PcloudContext,
    at_once: int = ROLLED_OUT_AT_ONCE,
) -> Pcloud:
    """Change fields of a pcloud.

    New ratios are applied to ``at_once`` hosts in this transaction. Later,
    :func:`ratio_rollout.go_on` applies the ratios to the other hosts, step by step. If a lower
    ratio puts a host over capacity, the host keeps its servers, but takes no new servers.
    """
    assert facts.keys() <= FACTS, "an owner sets no other fields"
    changed = {key: value for key, value in facts.items() if getattr(pcloud, key) != value}
    if not changed:
        return pcloud
    _demand_size(tx, changed)
    pclouds.change(tx, pcloud.id, changed, context.now)
    after = get(tx, pcloud.uuid)
    if after.ratios != pcloud.ratios:
        ratio_rollout.begin(tx, after, context, at_once)
        after = get(tx, pcloud.uuid)
    if after.is_automatic != pcloud.is_automatic:
        _add_changes(tx, after, context.now)
    members.record(tx, after, "update", context, detail=", ".join(sorted(changed)))
    return after


def _add_changes(tx: Tx, pcloud: Pcloud, now: datetime) -> None:
    # A change row for only one host is not enough, because this host might leave the pcloud before
    # other processes read the row.
    changes.add_always_read(tx, pcloud_hosts.provider_ids(tx, pcloud.id), now)


def delete(tx: Tx, pcloud: Pcloud, context: PcloudContext, *, is_forced: bool = False) -> None:
    """Delete a pcloud. Its actions and billing periods are kept.

    Raises :class:`InUse` while the pcloud has hosts. Also raises :class:`InUse` if shelved servers
    can be unshelved only on the pcloud. With ``is_forced``, the pcloud is deleted in spite of these
    servers. The servers keep their hints, and cannot be unshelved until their projects change the
    hints.

    Writing transactions take turns. So if another transaction shelves a server of the pcloud at the
    same time, either this function counts the server, or the other transaction finds no pcloud. See
    :func:`dedicated_hosts.stranded_by` for the exceptions.
    """
    count = pcloud_hosts.counts(tx, [pcloud.id]).get(pcloud.id, 0)
    if count:
        raise InUse(f"Pcloud {pcloud.uuid} has {count} host(s). Release them first.")
    stranded = dedicated_hosts.stranded_by(tx, pcloud.uuid)
    if stranded and not is_forced:
        raise InUse(_why_kept(pcloud, stranded, context.initiator.project_id))
    detail = f"shelved servers that name it: {len(stranded)}" if stranded else None
    members.record(tx, pcloud, "delete", context, detail=detail)
    pclouds.remove(tx, pcloud.id)
    owned_aggregates.remove(tx, pcloud.aggregate_id)


def _why_kept(pcloud: Pcloud, stranded: Sequence[Stranded], project_id: str | None) -> str:
    # For other projects' servers, only the number is shown.
    own_servers = [each.uuid for each in stranded if each.project_id == project_id]
    listed = ", ".join(
        [*own_servers[:LISTED_MAX], *(["..."] if len(own_servers) > LISTED_MAX else [])]
    )
    own = f"{len(own_servers)} of your project" + (f" ({listed})" if own_servers else "")
    return (
        f"Some shelved servers can be unshelved only on hosts of pcloud {pcloud.uuid}: {own}, "
        f"and {len(stranded) - len(own_servers)} of other projects. Their projects can select "
        "other hosts with the action setDedicatedHosts (openstack server dedicated hosts set, or "
        "unset). To delete the pcloud now, use force=true (openstack pcloud delete --force). The "
        "servers then cannot be unshelved until their projects have selected other hosts."
    )


def transfer(tx: Tx, pcloud: Pcloud, project_id: str, context: PcloudContext) -> Pcloud:
    """Transfer a pcloud to another project, which pays for its hosts from now on.

    Raises :class:`QuotaExceeded` if the pcloud or its hosts exceed the quota of the new owner. The
    projects that may use the pcloud stay the same, but must accept automatic placement again. The
    fields in :data:`OWN_CHOICES` are reset. The stored responses of idempotent requests are
    deleted.
    """
    if project_id == pcloud.project_id:
        return pcloud
    _demand_owner(tx, project_id, context)
    hosts = pcloud_hosts.of_pcloud(tx, pcloud.id)
    quotas.demand_room(tx, project_id, sum(each.units for each in hosts), context)
    ended = {key: no for key, no in OWN_CHOICES.items() if getattr(pcloud, key) != no}
    pclouds.change(tx, pcloud.id, {"project_id": project_id, **ended}, context.now)
    pclouds.set_accepted(tx, pcloud.id, None, has_accepted=False)
    pclouds.forget_answers(tx, pcloud.id)
    after = get(tx, pcloud.uuid)
    _add_changes(tx, after, context.now)
    paid = [each for each in hosts if each.is_paid]
    pcloud_hosts.end_billing(tx, [each.host_id for each in paid], context.now)
    members.begin_billing(tx, after, paid, context.now)
    members.record(tx, after, "transfer", context, detail=f"to project {project_id}")
    if ended:
        members.record(tx, after, "update", context, detail=", ".join(sorted(ended)))
    return after


# -- projects that may use a pcloud ------------------------------------------------------------


def projects(tx: Tx, found: list[Pcloud]) -> dict[int, dict[str, bool]]:
    """Return the projects that may use these pclouds, by the pclouds' row ids.

    The value of a project is True if the project has accepted automatic placement.
    """
    return pclouds.projects(tx, [each.id for each in found])


def may_use(tx: Tx, pcloud: Pcloud, project_id: str | None) -> bool:
    """Return True if a project's servers may be placed on a pcloud's hosts."""
    return project_id in _projects(tx, pcloud)


def _projects(tx: Tx, pcloud: Pcloud) -> dict[str, bool]:
    return pclouds.projects(tx, [pcloud.id]).get(pcloud.id, {})


def authorize(tx: Tx, pcloud: Pcloud, project_id: str, context: PcloudContext) -> None:
    """Allow a project to use a pcloud. Nothing changes if the project is already allowed."""
    there = _projects(tx, pcloud)
    if project_id in there:
        return
    aggregates.demand_project(project_id)
    aggregates.demand_known(tx, project_id, context)
    most = context.settings.quota_pcloud_projects
    _demand_room(len(there), most, "projects that may use a pcloud")
    pclouds.add_project(tx, pcloud.id, project_id)
    _add_changes(tx, pcloud, context.now)
    members.record(tx, pcloud, "authorize", context, detail=project_id)


def drop(tx: Tx, pcloud: Pcloud, project_id: str, context: PcloudContext) -> None:
    """Withdraw a project's right to use a pcloud. The project's present servers stay."""
    if pclouds.remove_project(tx, pcloud.id, project_id):
        _add_changes(tx, pcloud, context.now)
        members.record(tx, pcloud, "drop", context, detail=project_id)


def accept(tx: Tx, pcloud: Pcloud, project_id: str, context: PcloudContext) -> None:
    """Record that a project accepts automatic placement on a pcloud.

    From then on, requests of this project that name no pcloud may use the pcloud's hosts, as long
    as the pcloud is automatic. The owner consents by making the pcloud automatic. Raises
    :class:`NotFound` if the project may not use the pcloud.
    """
    there = _demand_user(tx, pcloud, project_id)
    if project_id not in consenting(pcloud.project_id, there):
        _set_accepted(tx, pcloud, project_id, context, has_accepted=True)


def decline(tx: Tx, pcloud: Pcloud, project_id: str, context: PcloudContext) -> None:
    """Withdraw a project's consent to automatic placement. The project's present servers stay.

    Raises :class:`NotFound` if the project may not use the pcloud. Raises :class:`Conflict` for the
    owner, because the owner consents by making the pcloud automatic.
    """
    there = _demand_user(tx, pcloud, project_id)
    if project_id == pcloud.project_id:
        raise Conflict(
            f"The project owns pcloud {pcloud.uuid}, so it cannot decline automatic placement. "
            "Switch off the automatic placement of the pcloud instead."
        )
    if there[project_id]:
        _set_accepted(tx, pcloud, project_id, context, has_accepted=False)


def _demand_user(tx: Tx, pcloud: Pcloud, project_id: str) -> dict[str, bool]:
    there = _projects(tx, pcloud)
    if project_id not in there:
        raise NotFound(f"Project {project_id} may not use pcloud {pcloud.uuid}.")
    return there


def _set_accepted(
    tx: Tx, pcloud: Pcloud, project_id: str, context: PcloudContext, *, has_accepted: bool
) -> None:
    pclouds.set_accepted(tx, pcloud.id, project_id, has_accepted=has_accepted)
    _add_changes(tx, pcloud, context.now)
    members.record(tx, pcloud, "accept" if has_accepted else "decline", context, detail=project_id)


def actions(
    tx: Tx, uuid: str, *, before: int | None = None, limit: int, owner_id: str | None = None
) -> list[PcloudAction]:
    """Return the actions on a pcloud, newest first.

    With ``owner_id``, return only the actions from the time when this project owned the pcloud.
    """
    return pcloud_actions.page(tx, uuid, before=before, limit=limit, owner_id=owner_id)


def last_action(tx: Tx, uuid: str) -> PcloudAction | None:
    """Return the last action on a pcloud. The last action on a deleted pcloud is the deletion."""
    canonical = canonical_uuid(uuid)
    found = [] if canonical is None else actions(tx, canonical, limit=1)
    return found[0] if found else None


def forget_old_actions(tx: Tx, context: PcloudContext) -> int:
    """Delete some expired actions. Return the number of deleted actions.

    Billing periods are kept.
    """
    days = context.settings.pcloud_actions_kept_days
    if not days:
        return 0
    return pcloud_actions.prune(tx, context.now - timedelta(days=days))
