"""Drives a cloud with dedicated hosts: steps of administrators, owners and the periodic tasks.

Each step is one transaction, as in the service. Some changes can be made by a function for pclouds
or by an edit of the aggregate; ``by_aggregate`` selects the latter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from innkeeper.domain.moves import Initiator
from innkeeper.domain.pclouds import HostFlavor, Pcloud
from innkeeper.domain.slices import Dedicating
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping import aggregates
from innkeeper.systems.compute.grouping.owned_aggregates import Owners
from innkeeper.systems.compute.hosts import hosts as compute_hosts
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.pclouds import (
    aggregate_edits,
    host_flavors,
    hosts,
    pclouds,
    quotas,
    ratio_rollout,
    replaced,
    sizes,
)
from innkeeper.systems.pclouds.context import PcloudContext
from innkeeper.systems.pclouds.hosts import HostRequest
from tests.support.clouds import UNLIMITED
from tests.support.moves import Movers
from tests.support.worlds import World, world

SETTINGS = Dedicating(quota_pcloud_units=4)
LIST_MAX = 1000
ALLOWED = "allowed"
"""The value of an aggregate's key for a project that may use the pcloud."""


class PcloudOperator:
    """Changes the dedicated hosts of a cloud whose clock the test sets."""

    def __init__(self, movers: Movers) -> None:
        self.movers = movers
        self.cloud = movers.cloud

    def context(self, project_id: str | None = None) -> PcloudContext:
        """Return the context of a step of a project, or of the service if no project is given."""
        return PcloudContext(
            SETTINGS,
            UNLIMITED.service_down_time_s,
            Initiator("req-1", project_id, "user"),
            self.movers.now,
            self.cloud.ids.seed(),
        )

    def world(self) -> World:
        """Return all rows of dedicated hosts."""
        seen: World = self.cloud.read(world)
        return seen

    # -- administrators --------------------------------------------------------------------

    def define(self, flavor_id: str, units: int) -> None:
        """Create a host flavor."""
        uuid, now = self.cloud.ids.uuid(), self.movers.now
        self.cloud.write(lambda tx: host_flavors.create(tx, uuid, flavor_id, "", units, now))

    def redefine(self, flavor_id: str, units: int, *, by_aggregate: bool) -> None:
        """Change the units that hosts of a flavor cost."""
        if by_aggregate:
            row = self._row_of_flavor(flavor_id)
            self.edit(row, {"pcloud:units": str(units)})
            return
        now = self.movers.now
        self.cloud.write(lambda tx: host_flavors.update(tx, flavor_id, None, units, now))

    def undefine(self, flavor_id: str, *, by_aggregate: bool) -> None:
        """Delete a host flavor."""
        if by_aggregate:
            self.forget(self._row_of_flavor(flavor_id))
            return
        self.cloud.write(lambda tx: host_flavors.delete(tx, flavor_id))

    def pool(self, flavor_id: str, hostname: str, *, by_aggregate: bool) -> None:
        """Add a host to a pool."""
        if by_aggregate:
            self.put_in(self._row_of_flavor(flavor_id), hostname)
            return
        now = self.movers.now
        self._with_flavor(
            flavor_id, lambda tx, flavor: host_flavors.add_host(tx, flavor, hostname, now)
        )

    def unpool(self, flavor_id: str, hostname: str, *, by_aggregate: bool) -> None:
        """Remove a host from a pool."""
        if by_aggregate:
            self.take_out(self._row_of_flavor(flavor_id), hostname)
            return
        now = self.movers.now
        self._with_flavor(
            flavor_id, lambda tx, flavor: host_flavors.remove_host(tx, flavor, hostname, now)
        )

    def maintain(self, flavor_id: str, hostname: str, reason: str | None) -> None:
        """Set or clear a host's maintenance."""
        context = self.context()
        self._with_flavor(
            flavor_id,
            lambda tx, flavor: host_flavors.set_maintenance(tx, flavor, hostname, reason, context),
        )

    def switch_service(self, hostname: str, change: ServiceChange) -> None:
        """Change a host's compute service."""
        now = self.movers.now

        def act(tx: Tx) -> None:
            compute_hosts.change_service(tx, compute_hosts.by_name(tx, hostname), change, now)

        self.cloud.write(act)

    def set_quota(self, project_id: str, limit: int) -> None:
        """Set the limit of units of a project."""
        self.cloud.write(lambda tx: quotas.set_limit(tx, project_id, limit, self.context()))

    def limits(self, projects: Sequence[str]) -> dict[str, int]:
        """Return the limits of units of these projects."""

        def look(tx: Tx) -> dict[str, int]:
            return {each: quotas.of_project(tx, each, SETTINGS).limit for each in projects}

        found: dict[str, int] = self.cloud.read(look)
        return found

    # -- aggregates ------------------------------------------------------------------------

    def edit(self, row: int, wanted: Mapping[str, str | None]) -> None:
        """Edit keys of an aggregate."""
        kept_by, now = self._owners(), self.movers.now
        self.cloud.write(lambda tx: aggregates.set_metadata(tx, row, wanted, now, kept_by))

    def put_in(self, row: int, hostname: str) -> None:
        """Put a host into an aggregate."""
        kept_by, now = self._owners(), self.movers.now
        self.cloud.write(lambda tx: aggregates.add_host(tx, row, hostname, now, kept_by))

    def take_out(self, row: int, hostname: str) -> None:
        """Take a host out of an aggregate."""
        kept_by, now = self._owners(), self.movers.now
        self.cloud.write(lambda tx: aggregates.remove_host(tx, row, hostname, now, kept_by))

    def forget(self, row: int) -> None:
        """Delete an aggregate."""
        kept_by, now = self._owners(), self.movers.now
        self.cloud.write(lambda tx: aggregates.delete(tx, row, now, kept_by))

    def zone_aggregate(self, zone: str) -> int:
        """Create an aggregate that defines an availability zone; returns its row."""
        uuid, now = self.cloud.ids.uuid(), self.movers.now
        made = self.cloud.write(lambda tx: aggregates.create(tx, uuid, zone, zone, now))
        return int(made.id)

    def metadata(self) -> dict[str, dict[str, str]]:
        """Return the metadata of the aggregates, by name."""
        kept_by = self._owners()
        found = self.cloud.read(lambda tx: aggregates.listing(tx, kept_by))
        return {each.name: dict(each.metadata) for each in found}

    def _owners(self) -> Owners:
        return aggregate_edits.owners(self.context(), ALLOWED)

    def _row_of_flavor(self, flavor_id: str) -> int:
        found: HostFlavor = self.cloud.read(lambda tx: host_flavors.get(tx, flavor_id))
        return found.aggregate_id

    def row_of(self, uuid: str) -> int:
        """Return the row of a pcloud's aggregate."""
        found: Pcloud = self.cloud.read(lambda tx: pclouds.get(tx, uuid))
        return found.aggregate_id

    # -- owners ----------------------------------------------------------------------------

    def create(self, project_id: str, **facts: Any) -> str:
        """Create a pcloud; return its id."""
        uuid, context = self.cloud.ids.uuid(), self.context(project_id)
        self.cloud.write(lambda tx: pclouds.create(tx, uuid, project_id, facts, context))
        return uuid

    def update(self, uuid: str, **facts: Any) -> None:
        """Change a pcloud."""
        self.act(uuid, lambda tx, pcloud, context: pclouds.update(tx, pcloud, facts, context))

    def delete(self, uuid: str, *, by_aggregate: bool, is_forced: bool = False) -> None:
        """Delete a pcloud; with force, even if its shelved servers then cannot return anywhere."""
        if by_aggregate:
            self.forget(self.row_of(uuid))
        else:
            self.act(
                uuid,
                lambda tx, pcloud, context: pclouds.delete(
                    tx, pcloud, context, is_forced=is_forced
                ),
            )

    def allocate(self, uuid: str, *requests: HostRequest) -> None:
        """Allocate one host; of several requests, as many as free hosts allow."""
        if len(requests) == 1:
            self.act(
                uuid, lambda tx, pcloud, context: hosts.allocate(tx, pcloud, requests[0], context)
            )
        else:
            self.act(
                uuid, lambda tx, pcloud, context: hosts.allocate_many(tx, pcloud, requests, context)
            )

    def switch(self, uuid: str, name: str, *, is_enabled: bool) -> None:
        """Enable or disable a pcloud's host."""
        self.act_on(uuid, name, hosts.set_state, is_enabled=is_enabled)

    def switch_by_aggregate(self, uuid: str, hostname: str, *, is_enabled: bool) -> None:
        """Enable or disable a pcloud's host by its aggregate key."""
        state = "enabled" if is_enabled else "disabled"
        self.edit(self.row_of(uuid), {f"pcloud:host_state:{hostname}": state})

    def act(
        self, uuid: str, work: Callable[[Tx, Pcloud, PcloudContext], Any], owner: str | None = None
    ) -> Any:
        """Change a pcloud."""
        context = self.context(owner)
        return self.cloud.write(lambda tx: work(tx, pclouds.get(tx, uuid), context))

    def act_on(self, uuid: str, name: str, work: Callable[..., Any], **more: Any) -> Any:
        """Change a host of a pcloud."""
        return self.act(
            uuid,
            lambda tx, pcloud, context: work(
                tx, pcloud, hosts.get(tx, pcloud, name), context, **more
            ),
        )

    def _with_flavor(self, flavor_id: str, work: Callable[[Tx, HostFlavor], Any]) -> None:
        self.cloud.write(lambda tx: work(tx, host_flavors.get(tx, flavor_id)))

    # -- the service itself ----------------------------------------------------------------

    def keep_sizes(self) -> int:
        """Bring each pcloud nearer to its size policy, as the periodic task does."""
        due: list[str] = self.cloud.read(sizes.due)
        return sum(self._keep_size(uuid) for uuid in due)

    def _keep_size(self, uuid: str) -> int:
        context = self.context()
        return int(self.cloud.write(lambda tx: sizes.keep(tx, uuid, context)))

    def roll_out_ratios(self) -> None:
        """Apply the intended ratios to the next host of each pcloud."""
        due: list[str] = self.cloud.read(ratio_rollout.due)
        for uuid in due:
            self._settle(uuid)

    def _settle(self, uuid: str) -> None:
        context = self.context()
        self.cloud.write(lambda tx: ratio_rollout.go_on(tx, uuid, context, at_once=1))

    def look_after_replaced(self, at_once: int = replaced.LOOKED_AT_ONCE) -> int:
        """Release replaced hosts that are empty, and charge for those that returned,
        as the periodic task does."""
        context = self.context()
        return int(self.cloud.write(lambda tx: replaced.look_after(tx, context, at_once)))
