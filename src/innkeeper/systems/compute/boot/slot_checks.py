"""Check that a project may use the reservation slots that a flavor demands."""

from __future__ import annotations

from innkeeper.domain.errors import Invalid
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.flavors import demands
from innkeeper.systems.compute.flavors.demands import Demands
from innkeeper.systems.compute.grouping import dedications


def check(
    tx: Tx, demanded: Demands, flavor_id: str, project_id: str, named: str | None = None
) -> None:
    """Reject a flavor with slots of a reservation that the project may not use.

    ``named`` is the reservation in the request's hint. Raises :class:`Invalid` if all slots in the
    flavor belong to other reservations. The server could not be placed on the hosts of the named
    reservation.
    """
    reserved = demands.reservations_of(demanded)
    if not reserved:
        return
    users = dedications.reservation_projects(tx, reserved)
    if any(project_id not in users.get(each, ()) for each in reserved):
        raise Invalid(f"Flavor {flavor_id} could not be found.")
    if named is not None and named not in reserved:
        raise Invalid(
            f"The hint names reservation {named}, but flavor {flavor_id} needs another reservation."
        )
