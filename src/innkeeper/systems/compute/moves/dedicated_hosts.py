"""Change and check the dedicated hosts of shelved servers.

Dedicated hosts belong to a pcloud or a reservation. All other hosts are ordinary.

Always true: when a pcloud or reservation ends, its servers may use ordinary hosts only after the
project or an administrator has allowed this. Servers that the pcloud took automatically may use
ordinary hosts at once. The hints that name dedicated hosts change only while the server has no
host. So the hints always allow the server's present host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from innkeeper.domain.compute import Server, Status
from innkeeper.domain.errors import Conflict, Invalid, WrongState
from innkeeper.domain.moves import ActionName, Initiator
from innkeeper.store.queries.compute import dedications as dedication_rows
from innkeeper.store.queries.compute import server_actions
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import dedications
from innkeeper.systems.compute.moves import moving
from innkeeper.systems.compute.servers import actions, servers

HINTS = frozenset(
    {dedications.HINT, dedications.HOST_HINT, dedications.UNASKED, dedications.RESERVATION_HINT}
)
"""The scheduler hints that decide which dedicated hosts a server may use."""
REMEDY = (
    "The action setDedicatedHosts (openstack server dedicated hosts set, or unset) changes the "
    "server's dedicated hosts, or lets the server use ordinary hosts"
)


@dataclass(frozen=True, slots=True)
class Stranded:
    """A shelved server that could not be unshelved if a pcloud were deleted."""

    uuid: str
    project_id: str


def change(
    tx: Tx,
    uuid: str,
    initiator: Initiator,
    *,
    pcloud: str | None = None,
    reservation: str | None = None,
    now: datetime,
) -> None:
    """Change the dedicated hosts of a server that has no host.

    ``pcloud`` and ``reservation`` are names or ids, as in scheduler hints. If both are ``None``,
    the server may use ordinary hosts. Raises :class:`Conflict` for a server that has a host or a
    task. Raises :class:`Invalid` for dedicated hosts that the server's project may not use.
    """
    assert pcloud is None or reservation is None, "no host is both"
    server = _admitted(tx, uuid, initiator)
    hints = {name: each for name, each in server.hints.items() if name not in HINTS}
    if pcloud is not None:
        hints[dedications.HINT] = _pcloud(tx, pcloud, server.project_id)
    if reservation is not None:
        found = _reservation(tx, reservation, server.project_id, now)
        hints[dedications.RESERVATION_HINT] = found
    if hints != server.hints:
        servers.write(tx, server, {"hints": hints}, now)
    server_actions.add(tx, server.uuid, ActionName.SET_DEDICATED_HOSTS, initiator, now)


def _pcloud(tx: Tx, named: str, project_id: str) -> str:
    uuid = dedications.pcloud_named(tx, named, project_id)
    if not any(project_id in each.projects for each in dedication_rows.pcloud_facts(tx, [uuid])):
        # An unknown id must not get into the hints, because the server could not be unshelved.
        raise Invalid(f"No pcloud that the server's project may use has the id {uuid}.")
    return uuid


def _reservation(tx: Tx, named: str, project_id: str, now: datetime) -> str:
    uuid = dedications.reservation_named(tx, named, project_id, now)
    is_mine = project_id in dedication_rows.reservation_projects(tx, [uuid]).get(uuid, ())
    if not is_mine or not dedication_rows.is_unended(tx, uuid, now):
        raise Invalid(
            f"No current or future reservation of the server's project has the id {uuid}."
        )
    return uuid


def _admitted(tx: Tx, uuid: str, initiator: Initiator) -> Server:
    try:
        server = actions.admit(tx, uuid, initiator, (Status.SHELVED_OFFLOADED,))
        if server.host is not None:
            # The server's host has not confirmed the offload yet.
            raise WrongState(server.uuid, "host", server.host)
    except WrongState as error:
        raise _not_shelved(error) from error
    moving.demand_settled(tx, server)
    return server


def _not_shelved(error: WrongState) -> Conflict:
    rule = (
        f"The dedicated hosts of server {error.server_uuid} can be changed only while it is "
        "SHELVED_OFFLOADED and has neither a host nor a task"
    )
    if error.fact == "status" and error.value == Status.SHELVED:
        return Conflict(f"{rule}. It is SHELVED: wait until it is offloaded from its host.")
    if error.fact == "status" and error.value in moving.SHELVABLE:
        return Conflict(
            f"{rule}. It is {error.value}: shelve it first, and wait until that is done."
        )
    if error.fact == "status":
        return Conflict(f"{rule}. It is {error.value}.")
    if error.fact == "task_state":
        return Conflict(f"{rule}. Its task is {error.value}: wait until that is over.")
    return Conflict(f"{rule}. Its last host has not confirmed the offload.")


def demand_there(tx: Tx, server: Server, now: datetime) -> None:
    """Raise :class:`Conflict` if a server can no longer use the dedicated hosts that it names.

    The message is the same for a deleted pcloud and for a pcloud that is closed to the project.
    """
    (wanted,) = dedications.wanted_by(tx, [(server.hints, server.project_id)])
    if wanted is None and dedications.named(server.hints):
        raise Conflict(
            f"The pcloud in the hints of server {server.uuid} no longer exists, or the project "
            f"may no longer use it. {REMEDY}."
        )
    reservation = dedications.named_reservation(server.hints)
    is_over = reservation is not None and not dedication_rows.is_unended(tx, reservation, now)
    if wanted is None or is_over:
        raise Conflict(
            f"The reservation in the hints of server {server.uuid} has ended, or no longer exists. "
            f"{REMEDY}."
        )


def stranded_by(tx: Tx, pcloud: str) -> list[Stranded]:
    """Return the offloaded servers that could not be unshelved if this pcloud were deleted.

    The hints of these servers name no other pcloud that their project may use. Servers of projects
    that may not use this pcloud are left out, because these servers cannot be unshelved anyway.
    Servers that the pcloud took automatically are left out too, because they may use ordinary
    hosts.

    Uncommitted changes of other transactions are not seen. A server that is missed for this reason
    cannot be unshelved until its project changes the server's dedicated hosts.
    """
    found = [
        (uuid, project_id, dedications.named(hints))
        for uuid, project_id, hints in dedication_rows.offloaded_with_hint(tx, dedications.HINT)
        if hints.get(dedications.UNASKED) is not True
    ]
    naming = [each for each in found if pcloud in each[2]]
    every = {each for _, _, named in naming for each in named}
    users: Mapping[str, frozenset[str]] = {
        each.uuid: each.projects for each in dedication_rows.pcloud_facts(tx, every)
    }
    return [
        Stranded(uuid, project_id)
        for uuid, project_id, named in naming
        if {each for each in named if project_id in users.get(each, ())} == {pcloud}
    ]
