"""Edits of the aggregates of host flavors and pclouds, carried out as what they mean.

Always true: what an administrator does to such an aggregate is done by the same functions as
what its owner asks for, and refused where those refuse. Keys that say what is so (whose host is
which, what kind an aggregate is) can be written as they are, and not otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.compute import Host
from innkeeper.domain.errors import Invalid
from innkeeper.domain.grouping import Aggregate
from innkeeper.domain.numerals import number_of
from innkeeper.domain.pclouds import (
    HOST_FLAVOR_KIND,
    PCLOUD_KIND,
    RATIO_MAX,
    RATIO_MIN,
    HostFlavor,
    Pcloud,
)
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.patterns import NAME_PATTERN
from innkeeper.entrypoints.api.pclouds import metadata
from innkeeper.entrypoints.api.schema_types import LENGTH_MAX
from innkeeper.systems.compute.grouping.owned_aggregates import AggregateOwner, Owners
from innkeeper.systems.pclouds import aggregates as pcloud_aggregates
from innkeeper.systems.pclouds import host_flavors, hosts, pclouds
from innkeeper.systems.pclouds.context import PcloudContext

RATIOS = {metadata.CPU_RATIO: "cpu_ratio", metadata.RAM_RATIO: "ram_ratio"}
UNITS_DIGITS_MAX = len(str(UNIT_MAX))
NAME = re.compile(NAME_PATTERN)


def owners(context: PcloudContext) -> Owners:
    """Who keeps the aggregates of this room."""
    return {HOST_FLAVOR_KIND: FlavorAggregates(context), PCLOUD_KIND: PcloudAggregates(context)}


class FlavorAggregates(AggregateOwner):
    """Keeps the aggregates whose hosts are a host flavor's pool."""

    def __init__(self, context: PcloudContext) -> None:
        self._context = context

    def metadata(self, tx: Tx, kept: Sequence[Aggregate]) -> Mapping[int, Mapping[str, str]]:
        """See :class:`AggregateOwner`."""
        found = host_flavors.by_aggregates(tx, [each.id for each in kept])
        return {row: metadata.of_flavor(flavor) for row, flavor in found.items()}

    def keeps_key(self, key: str) -> bool:
        """See :class:`AggregateOwner`."""
        return key.startswith(pcloud_aggregates.PREFIX)

    def set_metadata(
        self, tx: Tx, aggregate: Aggregate, wanted: Mapping[str, str | None], now: datetime
    ) -> None:
        """Change description and units."""
        flavor = self._flavor(tx, aggregate)
        ours = dict(wanted)
        description = ours.pop(pcloud_aggregates.DESCRIPTION, flavor.description)
        units = ours.pop(pcloud_aggregates.UNITS, str(flavor.units))
        metadata.refuse_changes(metadata.of_flavor(flavor), ours)
        if description is None or units is None or not _is_count(units):
            raise Invalid("A host flavor has a description, and units that are a number.")
        host_flavors.update(tx, flavor.flavor_id, description, int(units), now)

    def add_host(self, tx: Tx, aggregate: Aggregate, host: Host, now: datetime) -> None:
        """Put a host into the pool."""
        host_flavors.add_host(tx, self._flavor(tx, aggregate), host.name, now)

    def remove_host(self, tx: Tx, aggregate: Aggregate, host: Host, now: datetime) -> None:
        """Take a host out of the pool."""
        host_flavors.remove_host(tx, self._flavor(tx, aggregate), host.name, now)

    def delete(self, tx: Tx, aggregate: Aggregate, now: datetime) -> None:
        """Forget the host flavor."""
        host_flavors.delete(tx, self._flavor(tx, aggregate).flavor_id)

    def _flavor(self, tx: Tx, aggregate: Aggregate) -> HostFlavor:
        return host_flavors.by_aggregates(tx, [aggregate.id])[aggregate.id]


class PcloudAggregates(AggregateOwner):
    """Keeps the aggregates that are pclouds."""

    def __init__(self, context: PcloudContext) -> None:
        self._context = context

    def metadata(self, tx: Tx, kept: Sequence[Aggregate]) -> Mapping[int, Mapping[str, str]]:
        """See :class:`AggregateOwner`."""
        found = pclouds.by_aggregates(tx, [each.id for each in kept])
        whole = list(found.values())
        projects, members = pclouds.projects(tx, whole), hosts.of_pclouds(tx, whole)
        return {
            aggregate_id: metadata.of_pcloud(
                pcloud, projects.get(pcloud.id, {}), members.get(pcloud.id, ())
            )
            for aggregate_id, pcloud in found.items()
        }

    def keeps_key(self, key: str) -> bool:
        """See :class:`AggregateOwner`."""
        return key.startswith(pcloud_aggregates.PREFIX) or key in RATIOS

    def set_metadata(
        self, tx: Tx, aggregate: Aggregate, wanted: Mapping[str, str | None], now: datetime
    ) -> None:
        """Rename, give away, let in, let out, open and close, and set ratios."""
        pcloud = self._pcloud(tx, aggregate)
        present = self.metadata(tx, [aggregate])[aggregate.id]
        changed = {key: text for key, text in wanted.items() if present.get(key) != text}
        facts: dict[str, Any] = {
            field: _ratio(key, changed.pop(key)) for key, field in RATIOS.items() if key in changed
        }
        if pcloud_aggregates.NAME in changed:
            facts["name"] = _name(changed.pop(pcloud_aggregates.NAME))
        owner = changed.pop(pcloud_aggregates.OWNER, pcloud.project_id)
        if owner is None:
            raise Invalid("A pcloud has an owner.")
        pcloud = pclouds.update(tx, pcloud, facts, self._context)
        pcloud = pclouds.transfer(tx, pcloud, owner, self._context)
        for key, text in changed.items():
            self._set(tx, pcloud, key, text, present)

    def _set(
        self, tx: Tx, pcloud: Pcloud, key: str, text: str | None, present: Mapping[str, str]
    ) -> None:
        project_id = pcloud_aggregates.project_of(key)
        if project_id is not None and text is None:
            pclouds.drop(tx, pcloud, project_id, self._context)
        elif project_id is not None and text == metadata.PROJECT_VALUE:
            pclouds.authorize(tx, pcloud, project_id, self._context)
        elif key in present and key.startswith(pcloud_aggregates.HOST_STATE) and text in _STATES:
            member = hosts.by_machine(tx, key.removeprefix(pcloud_aggregates.HOST_STATE))
            assert member is not None, "what the pcloud says of a machine is of one of its own"
            is_enabled = text == metadata.ENABLED
            hosts.set_state(tx, pcloud, member, self._context, is_enabled=is_enabled)
        else:
            metadata.refuse_changes(present, {key: text})

    def add_host(self, tx: Tx, aggregate: Aggregate, host: Host, now: datetime) -> None:
        """Allocate this very host to the pcloud, under a name that gives nothing away."""
        hosts.allocate_this(tx, self._pcloud(tx, aggregate), host, self._context)

    def remove_host(self, tx: Tx, aggregate: Aggregate, host: Host, now: datetime) -> None:
        """Release a host."""
        pcloud, member = self._pcloud(tx, aggregate), hosts.by_row(tx, host.id)
        assert member is not None, "who is in the aggregate is in the pcloud"
        hosts.release(tx, pcloud, member, self._context)

    def delete(self, tx: Tx, aggregate: Aggregate, now: datetime) -> None:
        """Forget the pcloud."""
        pclouds.delete(tx, self._pcloud(tx, aggregate), self._context)

    def _pcloud(self, tx: Tx, aggregate: Aggregate) -> Pcloud:
        return pclouds.by_aggregates(tx, [aggregate.id])[aggregate.id]


_STATES = (metadata.ENABLED, metadata.DISABLED)


def _is_count(text: str) -> bool:
    is_number = text.isascii() and text.isdigit() and len(text) <= UNITS_DIGITS_MAX
    return is_number and int(text) <= UNIT_MAX


def _ratio(key: str, text: str | None) -> float | None:
    if text is None:
        return None
    ratio = number_of(text)
    if ratio is None or not RATIO_MIN <= ratio <= RATIO_MAX:
        raise Invalid(f"{key} is a number from {RATIO_MIN} to {RATIO_MAX:.0f}.")
    return ratio


def _name(text: str | None) -> str:
    if text is None or len(text) > LENGTH_MAX or NAME.match(text) is None:
        raise Invalid(f"A pcloud's name has 1 to {LENGTH_MAX} characters, all of them printable.")
    return text
