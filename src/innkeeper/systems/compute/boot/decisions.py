"""Store each placement decision with its servers, and show it later.

Always true: a decision is shown as it was made, even if the host table or the settings have
changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from innkeeper.domain.compute import Server
from innkeeper.domain.errors import NotFound
from innkeeper.domain.explaining import Refused
from innkeeper.domain.placing import BuildPlan, RequestSpec
from innkeeper.scheduling import explaining, explanation_values
from innkeeper.scheduling.facts import masks
from innkeeper.scheduling.schedulers.scheduler import Scheduler
from innkeeper.snapshot.recording import Moment
from innkeeper.store.queries.compute import server_actions
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.boot.recordings import DecisionRequest
from innkeeper.systems.compute.boot.resolved_requests import ResolvedRequest
from innkeeper.systems.compute.servers.servers import fault_message

NOBODY_REFUSED = Refused((), ())
HAS_DEDICATED = "has_dedicated"
"""The key of the part that only administrators see. If no host was dedicated at the time of the
decision, the value is False. Older versions stored True instead of this part."""
COUNTED = "missing_counted"
"""The key, inside ``HAS_DEDICATED``, of the messages that count hosts, by filter name."""
ON_HOSTS = ("host", "alternates")
"""The keys whose values are host names. Only administrators see these keys."""


class DecisionRecord(msgspec.Struct, frozen=True):
    """The record of one decision, which is stored with the servers of its request.

    ``servers`` has one record for each placed server. If no valid host was found, ``servers`` is
    empty, and each server gets the record ``request``.
    """

    request: Mapping[str, Any] | None = None
    servers: Sequence[Mapping[str, Any]] = ()
    refused: Refused = NOBODY_REFUSED

    def of_server(self, number: int) -> Mapping[str, Any] | None:
        """Return the record of one server. ``number`` is the server's index in the request."""
        return self.servers[number] if self.servers else self.request


NOTHING_KEPT = DecisionRecord()


def of_placed(
    context: DecisionContext, resolved: ResolvedRequest, made: BuildPlan, moment: Moment | None
) -> DecisionRecord:
    """Return the record of a plan with enough hosts.

    The plan's amounts are already subtracted from the host table. ``moment`` is a copy of the table
    from before the decision.
    """
    if moment is not None:
        context.recorder.keep(_request(resolved), made, moment)
    setting = context.scheduling.explain_decisions
    if setting == "off":
        return NOTHING_KEPT
    scheduler = context.schedulers.of(resolved.filters)
    shared = _shared(context, scheduler, resolved, made)
    if setting == "full":
        shared |= _full(context, scheduler, resolved.spec, made)
    return DecisionRecord(servers=_of_servers(shared, made))


def of_named(
    context: DecisionContext, resolved: ResolvedRequest, made: BuildPlan
) -> DecisionRecord:
    """Return the record of a plan whose servers had to use the hosts of their entries."""
    if context.scheduling.explain_decisions == "off":
        return NOTHING_KEPT
    scheduler = context.schedulers.of(resolved.filters)
    shared = _shared(context, scheduler, resolved, made) | {"wanted": 1, "room": 1}
    return DecisionRecord(servers=_of_servers(shared, made))


def of_refused(
    context: DecisionContext, resolved: ResolvedRequest, made: BuildPlan, moment: Moment | None
) -> DecisionRecord:
    """Return the record of a plan with too few hosts.

    The plan is already undone in the host table.
    """
    table = context.follower.table
    moment = moment or context.recorder.after_failure(table)
    if moment is not None:
        context.recorder.keep(_request(resolved), made, moment)
    if context.scheduling.explain_decisions == "off":
        return NOTHING_KEPT
    scheduler = context.schedulers.of(resolved.filters)
    refused = explaining.refused(scheduler.pipeline, table, resolved.spec, made)
    request = {
        **_shared(context, scheduler, resolved, made),
        **_refused(context, refused),
        "decided_by": _deciders(context, scheduler, resolved.spec),
    }
    return DecisionRecord(request=request, refused=refused)


def of_failed(
    context: DecisionContext, resolved: ResolvedRequest, made: BuildPlan
) -> DecisionRecord:
    """Return the record of a decision in which a plug-in failed. ``made`` is an empty plan."""
    if context.scheduling.explain_decisions == "off":
        return NOTHING_KEPT
    shared = _shared(context, context.schedulers.of(resolved.filters), resolved, made)
    nothing = explanation_values.refused(NOBODY_REFUSED, are_hosts_named=True, is_counted=False)
    return DecisionRecord(request={**shared, **nothing})


def _of_servers(shared: Mapping[str, Any], made: BuildPlan) -> list[dict[str, Any]]:
    return [
        {
            **shared,
            "host": entry.host,
            "weight": entry.weight,
            "parts": entry.parts,
            "alternates": list(entry.alternates),
        }
        for entry in made.entries
    ]


def _request(resolved: ResolvedRequest) -> DecisionRequest:
    request = resolved.request
    return DecisionRequest(resolved.spec, resolved.filters, request.now, request.batch_id)


def _shared(
    context: DecisionContext, scheduler: Scheduler, resolved: ResolvedRequest, made: BuildPlan
) -> dict[str, Any]:
    shared = {
        "decided_at": resolved.request.now.isoformat(timespec="microseconds") + "Z",
        "hosts": made.hosts,
        "candidates": made.candidates,
        "wanted": resolved.spec.count,
        "room": len(made.entries),
        "removed": [
            {"filter": each.filter_name, "removed": each.removed} for each in made.removals
        ],
        "decided_by": {"driver": scheduler.NAME, "seed": resolved.spec.seed},
        HAS_DEDICATED: _for_administrators(context, NOBODY_REFUSED),
    }
    if resolved.request.hints:
        shared["unread_hints"] = explanation_values.unread_hints(resolved.unread)
    return shared


def _full(
    context: DecisionContext, scheduler: Scheduler, spec: RequestSpec, made: BuildPlan
) -> dict[str, Any]:
    refused, best = explaining.before(scheduler.pipeline, context.follower.table, spec, made)
    return {
        **_refused(context, refused),
        "best": explanation_values.ranked(best, are_hosts_named=True),
        "decided_by": _deciders(context, scheduler, spec),
    }


def _refused(context: DecisionContext, refused: Refused) -> dict[str, Any]:
    return {
        **explanation_values.refused(refused, are_hosts_named=True, is_counted=False),
        HAS_DEDICATED: _for_administrators(context, refused),
    }


def _for_administrators(context: DecisionContext, refused: Refused) -> dict[str, Any] | bool:
    if not masks.has_dedicated(context.follower.table):
        return False
    counted = {each.filter_name: each.counted for each in refused.tallies}
    return {COUNTED: counted}


def _deciders(context: DecisionContext, scheduler: Scheduler, spec: RequestSpec) -> dict[str, Any]:
    size = context.scheduling.host_subset_size
    return explanation_values.deciders(explaining.deciders(scheduler, size, spec.seed))


# -- shown later -------------------------------------------------------------------------------


def shown(tx: Tx, server: Server, *, are_hosts_named: bool) -> dict[str, Any]:
    """Return the stored placement decision of a server. Raises :class:`NotFound`."""
    kept = server_actions.decision(tx, server.uuid)
    if kept is None:
        raise NotFound(f"No placement decision is stored for server {server.uuid}.")
    places = [name for name in ("host", "weight", "parts", "alternates") if name in kept]
    inside = {*places, HAS_DEDICATED}
    rest = {name: value for name, value in kept.items() if name not in inside}
    fault = None
    if server.fault:
        fault = fault_message(server.fault, is_counted=are_hosts_named)
    answer = {**rest, "chosen": [{name: kept[name] for name in places}] if places else []}
    answer |= {"servers": len(answer["chosen"]), "fault": fault}
    if not server.hints:
        answer["unread_hints"] = []
    if are_hosts_named:
        return answer | {"removed": _counted(kept)}
    # If the key is missing, an older version stored the decision. Dedicated hosts may then have
    # existed.
    had_dedicated = kept.get(HAS_DEDICATED, True)
    nameless = _without_names(answer)
    return explanation_values.uncounted(nameless) if had_dedicated else nameless


def _counted(kept: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the number of hosts that each filter removed, with the messages for administrators."""
    inside = kept.get(HAS_DEDICATED)
    counted = inside.get(COUNTED, {}) if isinstance(inside, Mapping) else {}
    return [
        {**each, "missing": counted[each["filter"]]} if each["filter"] in counted else each
        for each in kept["removed"]
    ]


def _without_names(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: [_nameless(each) for each in value] if isinstance(value, list) else value
        for key, value in answer.items()
    }


def _nameless(item: Any) -> Any:
    if not isinstance(item, Mapping):
        return item
    return {name: value for name, value in item.items() if name not in ON_HOSTS}
