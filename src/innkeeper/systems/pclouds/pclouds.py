"""Pclouds: made, found, changed and forgotten; and the projects that may use them.

Source: the seed *Whole Host Allocation*, "Pclouds" and what follows it.

Always true: a stranger's pcloud looks like one that is not there. The owner is let in when a
pcloud is made, and may leave without losing it. A change of who may use a pcloud, or of what it
takes, adds change rows for its hosts, since the host table holds it with them. A project's word
that its plain requests may come is its own: it does not outlive the owner to whom it was given,
nor the project's right to use the pcloud.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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

FACTS = frozenset({"name", "cpu_ratio", "ram_ratio", "is_automatic", "size"})
"""What an owner may say of a pcloud, by the names of its fields."""
TOLD_MAX = 5
"""Servers of the caller's own project that a refusal names."""
OWN_CHOICES: Mapping[str, Any] = MappingProxyType({"is_automatic": False, "size": None})
"""What is in force until there is another owner: it would take servers in, and hosts at the
other one's expense, of which that one never said a word."""


def unknown(uuid: str) -> NotFound:
    """What is said of a pcloud that is not there, or is a stranger's."""
    return NotFound(f"Pcloud {uuid} could not be found.")


def get(tx: Tx, uuid: str) -> Pcloud:
    """The pcloud with this id; else :class:`NotFound`."""
    found = get_or_none(tx, uuid)
    if found is None:
        raise unknown(uuid)
    return found


def get_or_none(tx: Tx, uuid: str) -> Pcloud | None:
    """The pcloud with this id, if it is there."""
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
    """Pclouds in the order in which they were made, behind ``after``.

    ``viewer`` is the project that looks: it sees what it owns or may use. ``None`` sees all.
    """
    row = 0
    if after is not None:
        row = paging.found(after, lambda: _seen(tx, after, viewer)).id
    if viewer is not None and project_id not in (None, viewer):
        # Whose the others are that it may use, it is not told, and cannot find out so.
        return []
    return pclouds.page(tx, viewer=viewer, after=row, limit=limit, project_id=project_id, name=name)


def _seen(tx: Tx, uuid: str, viewer: str | None) -> Pcloud:
    found = get(tx, uuid)
    if viewer not in (None, found.project_id) and not may_use(tx, found, viewer):
        raise unknown(uuid)
    return found


def by_aggregates(tx: Tx, rows: Collection[int]) -> dict[int, Pcloud]:
    """The pclouds that aggregates in these rows are, by the rows."""
    return pclouds.by_aggregates(tx, rows)


def host_counts(tx: Tx, found: list[Pcloud]) -> dict[int, int]:
    """How many hosts these pclouds have, by their rows."""
    return pcloud_hosts.counts(tx, [each.id for each in found])


def create(
    tx: Tx, uuid: str, project_id: str, facts: Mapping[str, Any], context: PcloudContext
) -> Pcloud:
    """Make a pcloud without hosts, which its owner may use.

    Raises :class:`Invalid` for a project that cannot be let in, :class:`NotFound` for a host
    flavor that its policy names in vain, and :class:`QuotaExceeded` for one pcloud too many.
    """
    aggregates.demand_project(project_id)
    aggregates.demand_known(tx, project_id, context)
    count = pclouds.count(tx, project_id)
    _demand_room(count, context.settings.quota_pclouds, "pclouds")
    _demand_size(tx, facts)
    row = owned_aggregates.create(tx, uuid, aggregates.pcloud_name(uuid), PCLOUD_KIND, context.now)
    whole = {"cpu_ratio": None, "ram_ratio": None, "is_automatic": False, "size": None, **facts}
    assert whole.keys() == FACTS, "a pcloud has a name, and nothing that nobody knows"
    pclouds.add(tx, uuid, row, project_id, whole, context.now)
    made = get(tx, uuid)
    pclouds.add_project(tx, made.id, project_id)
    members.tell(tx, made, "create", context)
    return made


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
    """Change what an owner says of a pcloud.

    So many of its hosts have other ratios at once; who is given one that ``is_settling`` has
    :func:`settling.go_on` bring over the others, each time in a transaction of its own. With a
    lower ratio a host may have given out more than it has: what is there stays, and nothing
    new comes.
    """
    assert facts.keys() <= FACTS, "nothing else is an owner's to say"
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
        _show_members(tx, after, context.now)
    detail = ", ".join(sorted(changed))
    members.tell(tx, after, "update", context, detail=detail)
    return after


def _show_members(tx: Tx, pcloud: Pcloud, now: datetime) -> None:
    # Of all: the one that was told of might leave before anybody looks.
    changes.add_always_read(tx, pcloud_hosts.provider_ids(tx, pcloud.id), now)


def delete(tx: Tx, pcloud: Pcloud, context: PcloudContext, *, is_forced: bool = False) -> None:
    """Forget a pcloud; raises :class:`InUse` while it has hosts.

    Raises :class:`InUse` as well while shelved servers on no host could not come back without
    it, unless ``is_forced``: those servers keep their hint then, and cannot be unshelved before
    their project changes it. What was done to the pcloud, and what was paid for it, stays on
    record.

    A server that comes to name the pcloud at the same moment is counted, or finds the pcloud
    gone: writers take turns, and its own transaction looks for the pcloud. For what may be
    false of that, see :func:`dedicated_hosts.stranded_by`.
    """
    count = pcloud_hosts.counts(tx, [pcloud.id]).get(pcloud.id, 0)
    if count:
        raise InUse(f"Pcloud {pcloud.uuid} has {count} host(s). Release them first.")
    stranded = dedicated_hosts.stranded_by(tx, pcloud.uuid)
    if stranded and not is_forced:
        raise InUse(_why_kept(pcloud, stranded, context.asker.project_id))
    detail = f"shelved servers that name it: {len(stranded)}" if stranded else None
    members.tell(tx, pcloud, "delete", context, detail=detail)
    pclouds.remove(tx, pcloud.id)
    owned_aggregates.remove(tx, pcloud.aggregate_id)


def _why_kept(pcloud: Pcloud, stranded: Sequence[Stranded], project_id: str | None) -> str:
    # Of other projects' servers, how many there are is all that anybody is told.
    mine = [each.uuid for each in stranded if each.project_id == project_id]
    told = ", ".join([*mine[:TOLD_MAX], *(["..."] if len(mine) > TOLD_MAX else [])])
    own = f"{len(mine)} of your project" + (f" ({told})" if mine else "")
    return (
        f"Pcloud {pcloud.uuid} is the only one that shelved servers can come back to: {own}, "
        f"and {len(stranded) - len(mine)} of other projects. Their projects can change that "
        "with the action setDedicatedHosts (openstack server dedicated hosts set, or unset). "
        "With force=true (openstack pcloud delete --force) the pcloud is deleted all the same; "
        "the servers cannot be unshelved then before their projects have changed that."
    )


def transfer(tx: Tx, pcloud: Pcloud, project_id: str, context: PcloudContext) -> Pcloud:
    """Give a pcloud to another project, which pays for its hosts from now on.

    Raises :class:`QuotaExceeded` where that one's quota has no room for them. Who may use it
    stays as it is; whose plain requests may come, each is to say again, to the new owner. What
    the last owner chose of that kind ends too, and nobody is answered in its name any more.
    """
    if project_id == pcloud.project_id:
        return pcloud
    aggregates.demand_project(project_id)
    aggregates.demand_known(tx, project_id, context)
    count = pclouds.count(tx, project_id)
    _demand_room(count, context.settings.quota_pclouds, "pclouds")
    hosts = pcloud_hosts.of_pcloud(tx, pcloud.id)
    quotas.demand_room(tx, project_id, sum(each.units for each in hosts), context)
    ended = {key: no for key, no in OWN_CHOICES.items() if getattr(pcloud, key) != no}
    pclouds.change(tx, pcloud.id, {"project_id": project_id, **ended}, context.now)
    pclouds.set_accepted(tx, pcloud.id, None, has_accepted=False)
    pclouds.forget_answers(tx, pcloud.id)
    after = get(tx, pcloud.uuid)
    _show_members(tx, after, context.now)
    paid = [each for each in hosts if each.is_paid]
    pcloud_hosts.end_billing(tx, [each.host_id for each in paid], context.now)
    members.begin_billing(tx, after, paid, context.now)
    members.tell(tx, after, "transfer", context, detail=f"to project {project_id}")
    if ended:
        members.tell(tx, after, "update", context, detail=", ".join(sorted(ended)))
    return after


# -- who may use it ----------------------------------------------------------------------------


def projects(tx: Tx, found: list[Pcloud]) -> dict[int, dict[str, bool]]:
    """The projects that may use these pclouds, by the pclouds' rows.

    With each is told whether it has accepted that plain requests of it come.
    """
    return pclouds.projects(tx, [each.id for each in found])


def may_use(tx: Tx, pcloud: Pcloud, project_id: str | None) -> bool:
    """Whether a project's servers may come to a pcloud's hosts."""
    return project_id in _projects(tx, pcloud)


def _projects(tx: Tx, pcloud: Pcloud) -> dict[str, bool]:
    return pclouds.projects(tx, [pcloud.id]).get(pcloud.id, {})


def authorize(tx: Tx, pcloud: Pcloud, project_id: str, context: PcloudContext) -> None:
    """Let a project use a pcloud; one that may already goes on doing so."""
    there = _projects(tx, pcloud)
    if project_id in there:
        return
    aggregates.demand_project(project_id)
    aggregates.demand_known(tx, project_id, context)
    most = context.settings.quota_pcloud_projects
    _demand_room(len(there), most, "projects that may use a pcloud")
    pclouds.add_project(tx, pcloud.id, project_id)
    _show_members(tx, pcloud, context.now)
    members.tell(tx, pcloud, "authorize", context, detail=project_id)


def drop(tx: Tx, pcloud: Pcloud, project_id: str, context: PcloudContext) -> None:
    """Let no new server of a project come; those that are there stay."""
    if pclouds.remove_project(tx, pcloud.id, project_id):
        _show_members(tx, pcloud, context.now)
        members.tell(tx, pcloud, "drop", context, detail=project_id)


def accept(tx: Tx, pcloud: Pcloud, project_id: str, context: PcloudContext) -> None:
    """Let a project's plain requests come to a pcloud, whenever that takes such.

    Raises :class:`NotFound` for a project that may not use it. Its owner has said so before, by
    making it automatic.
    """
    there = _demand_user(tx, pcloud, project_id)
    if project_id not in consenting(pcloud.project_id, there):
        _set_accepted(tx, pcloud, project_id, context, has_accepted=True)


def decline(tx: Tx, pcloud: Pcloud, project_id: str, context: PcloudContext) -> None:
    """Let no new plain request of a project come; servers that came so stay.

    Raises :class:`NotFound` for a project that may not use it, and :class:`Conflict` for its
    owner's, whose requests would come all the same.
    """
    there = _demand_user(tx, pcloud, project_id)
    if project_id == pcloud.project_id:
        raise Conflict(
            f"Pcloud {pcloud.uuid} is the project's own. To take no requests that name no "
            "pcloud, switch its automatic placement off."
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
    _show_members(tx, pcloud, context.now)
    members.tell(tx, pcloud, "accept" if has_accepted else "decline", context, detail=project_id)


def actions(
    tx: Tx, uuid: str, *, before: int | None = None, limit: int, owner_id: str | None = None
) -> list[PcloudAction]:
    """What was done to a pcloud, the newest first.

    With ``owner_id`` without what was done while it was another project's.
    """
    return pcloud_actions.page(tx, uuid, before=before, limit=limit, owner_id=owner_id)


def last_action(tx: Tx, uuid: str) -> PcloudAction | None:
    """What was done last to a pcloud; of one that is gone, that it was deleted."""
    canonical = canonical_uuid(uuid)
    found = [] if canonical is None else actions(tx, canonical, limit=1)
    return found[0] if found else None


def forget_old_actions(tx: Tx, context: PcloudContext) -> int:
    """Forget some of what was done longer ago than is kept; give how many.

    What was paid for is kept for good, and so whose hosts were whose.
    """
    days = context.settings.pcloud_actions_kept_days
    if not days:
        return 0
    return pcloud_actions.prune(tx, context.now - timedelta(days=days))
