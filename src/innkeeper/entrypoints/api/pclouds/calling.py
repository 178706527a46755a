"""Functions that the handlers of host flavors and pclouds share."""

from __future__ import annotations

from datetime import datetime

from innkeeper.domain.pclouds import Pcloud
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.routing import Call
from innkeeper.systems.pclouds import pclouds
from innkeeper.systems.pclouds.context import PcloudContext

PCLOUDS = "os_compute_api:os-pclouds"
FLAVORS = "os_compute_api:os-host-flavors"
LINES_OF_A_HOST = 10
"""The number of rows to write when a host joins a pcloud or gets new ratios."""


def context(call: Call) -> PcloudContext:
    """Return the context of a call in the form that the pclouds system needs."""
    return PcloudContext(
        settings=call.site.settings.dedicating,
        service_down_time_s=call.site.settings.computing.service_down_time_s,
        initiator=call.initiator(),
        now=call.now,
        seed=call.site.ids.seed(),
        knows_projects=call.site.settings.authenticating.auth == "builtin",
    )


def owned(tx: Tx, call: Call) -> Pcloud:
    """Return the pcloud in the path, if the route's rule allows the call.

    Otherwise, the error is a 403 if the caller may see or use the pcloud, and a 404 if not.
    """
    found = pclouds.get(tx, call.params["pcloud_id"])
    demand_owned(tx, call, found)
    return found


def demand_owned(tx: Tx, call: Call, found: Pcloud) -> None:
    """Raise the errors of :func:`owned` for a pcloud that has already been read."""
    rule = call.rule
    if not call.allows(rule, project_id=found.project_id):
        _demand_seen(tx, call, found)
        call.demand(rule, project_id=found.project_id)


def seen(tx: Tx, call: Call) -> Pcloud:
    """Return the pcloud in the path, if the caller may see or use it."""
    found = pclouds.get(tx, call.params["pcloud_id"])
    _demand_seen(tx, call, found)
    return found


def used(tx: Tx, call: Call) -> Pcloud:
    """Return the pcloud in the path, if the caller may act for the project in the path.

    Members of this project and administrators may act for the project. The pcloud's owner may not
    act for it.
    """
    found = seen(tx, call)
    call.demand(call.rule, project_id=call.params["tenant_id"])
    return found


def let_out(tx: Tx, call: Call) -> Pcloud:
    """Return the pcloud in the URL, if the caller may revoke the access of the project in the URL.

    The pcloud's owner may revoke any project's access. A guest may give up its own access. Any
    other caller gets the errors of :func:`owned`.
    """
    found = pclouds.get(tx, call.params["pcloud_id"])
    project_id = call.params["tenant_id"]
    acts_for_it = call.allows(call.rule, project_id=project_id)
    if not (acts_for_it and pclouds.may_use(tx, found, project_id)):
        demand_owned(tx, call, found)
    return found


def _demand_seen(tx: Tx, call: Call, pcloud: Pcloud) -> None:
    is_visible = call.allows(f"{PCLOUDS}:show", project_id=pcloud.project_id)
    if not is_visible and not pclouds.may_use(tx, pcloud, call.context.project_id):
        raise pclouds.unknown(call.params["pcloud_id"])


def moment(value: datetime) -> str:
    """Format a naive UTC time for an answer."""
    assert value.tzinfo is None, "times are naive and in UTC"
    return value.isoformat(timespec="microseconds")
