"""What handlers of host flavors and pclouds have in common: terms, visibility, moments."""

from __future__ import annotations

from datetime import datetime

from innkeeper.domain.errors import Invalid
from innkeeper.domain.pclouds import Pcloud
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.routing import Call
from innkeeper.systems.pclouds import pclouds
from innkeeper.systems.pclouds.context import PcloudContext

PCLOUDS = "os_compute_api:os-pclouds"
FLAVORS = "os_compute_api:os-host-flavors"
LINES_OF_A_HOST = 10
"""Things that are written when a host comes to a pcloud or has other ratios: its own row, what
it gives out, what is paid for it, and what others are told."""


def context(call: Call) -> PcloudContext:
    """What the pclouds room is told of this call."""
    return PcloudContext(
        settings=call.site.settings.dedicating,
        service_down_time_s=call.site.settings.computing.service_down_time_s,
        asker=call.asker(),
        now=call.now,
        seed=call.site.ids.seed(),
        knows_projects=call.site.settings.authenticating.auth == "builtin",
    )


def owned(tx: Tx, call: Call) -> Pcloud:
    """The pcloud that the path names, if the route's rule lets the caller do that to it.

    Who may look at it, or use it, and no more is told so; to all others it is not there.
    """
    found = pclouds.get(tx, call.params["pcloud_id"])
    demand_owned(tx, call, found)
    return found


def demand_owned(tx: Tx, call: Call, found: Pcloud) -> None:
    """Refuse what :func:`owned` refuses, of the pcloud that the path names."""
    rule = call.rule
    if not call.allows(rule, project_id=found.project_id):
        _demand_seen(tx, call, found)
        call.demand(rule, project_id=found.project_id)


def seen(tx: Tx, call: Call) -> Pcloud:
    """The pcloud that the path names, if the caller may look at it, or use it."""
    found = pclouds.get(tx, call.params["pcloud_id"])
    _demand_seen(tx, call, found)
    return found


def used(tx: Tx, call: Call) -> Pcloud:
    """The pcloud that the path names, if the caller may speak for the project in the path.

    That is for the project's own members, and for administrators: an owner does not speak for
    its guests.
    """
    found = seen(tx, call)
    call.demand(call.rule, project_id=call.params["tenant_id"])
    return found


def let_out(tx: Tx, call: Call) -> Pcloud:
    """The pcloud that the path names, if the caller may let the project in the path out of it.

    Its owner may let out any; whoever else speaks for a project that may use it, that one. A
    guest that is let out already finds it as little as any stranger.
    """
    found = pclouds.get(tx, call.params["pcloud_id"])
    project_id = call.params["tenant_id"]
    speaks_for_it = call.allows(call.rule, project_id=project_id)
    if not (speaks_for_it and pclouds.may_use(tx, found, project_id)):
        demand_owned(tx, call, found)
    return found


def _demand_seen(tx: Tx, call: Call, pcloud: Pcloud) -> None:
    sees_it = call.allows(f"{PCLOUDS}:show", project_id=pcloud.project_id)
    if not sees_it and not pclouds.may_use(tx, pcloud, call.context.project_id):
        raise pclouds.unknown(call.params["pcloud_id"])


def project(call: Call) -> str:
    """The project that the caller acts for."""
    project_id = call.context.project_id
    if project_id is None:
        raise Invalid("Pclouds belong to a project; the token names none.")
    return project_id


def moment(value: datetime) -> str:
    """A moment as this API writes it, and keeps it: in UTC, without saying so."""
    assert value.tzinfo is None, "what has a zone might be of another one"
    return value.isoformat(timespec="microseconds")
