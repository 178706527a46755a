"""Apply edits of an aggregate to the host flavor or the pcloud that the aggregate represents.

Always true: an administrator's edit calls the same functions as a request of the pcloud's owner,
and is rejected in the same cases. Read-only keys, such as the kind of an aggregate, accept only
their current value. The keys come from the three tables of the design *Whole Host Allocation*.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.compute import Host
from innkeeper.domain.errors import Invalid
from innkeeper.domain.grouping import Aggregate
from innkeeper.domain.names import NAME_MAX, is_name
from innkeeper.domain.numerals import number_of
from innkeeper.domain.pclouds import (
    HOST_FLAVOR_KIND,
    PCLOUD_KIND,
    RATIO_MAX,
    RATIO_MIN,
    HostFlavor,
    Pcloud,
    PcloudHost,
)
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.grouping.owned_aggregates import AggregateOwner, Owners
from innkeeper.systems.pclouds import host_flavors, hosts, pclouds
from innkeeper.systems.pclouds.aggregates import (
    DESCRIPTION,
    FLAVOR_ID,
    HOST,
    HOST_STATE,
    ID,
    NAME,
    OWNER,
    PREFIX,
    TYPE,
    UNITS,
    project_of,
)
from innkeeper.systems.pclouds.context import PcloudContext

CPU_RATIO, RAM_RATIO = "cpu_allocation_ratio", "ram_allocation_ratio"
POOL_TYPE, PCLOUD_TYPE = "host_flavor_pool", "pcloud"
ENABLED, DISABLED = "enabled", "disabled"
RATIOS = {CPU_RATIO: "cpu_ratio", RAM_RATIO: "ram_ratio"}
UNITS_DIGITS_MAX = len(str(UNIT_MAX))


def owners(context: PcloudContext, allowed: str) -> Owners:
    """Return the objects that handle edits of host flavors' and pclouds' aggregates, by kind.

    A metadata key with the value ``allowed`` names a project that may use a pcloud.
    """
    pcloud_aggregates = PcloudAggregates(context, allowed)
    return {HOST_FLAVOR_KIND: FlavorAggregates(), PCLOUD_KIND: pcloud_aggregates}


class FlavorAggregates(AggregateOwner):
    """Handles edits of the aggregate that represents a host flavor's pool."""

    def metadata(self, tx: Tx, kept: Sequence[Aggregate]) -> Mapping[int, Mapping[str, str]]:
        found = host_flavors.by_aggregates(tx, [each.id for each in kept])
        return {row: _flavor_metadata(flavor) for row, flavor in found.items()}

    def keeps_key(self, key: str) -> bool:
        return key.startswith(PREFIX)

    def set_metadata(
        self, tx: Tx, aggregate: Aggregate, edits: Mapping[str, str | None], now: datetime
    ) -> None:
        flavor = self._flavor(tx, aggregate)
        remaining = dict(edits)
        description = remaining.pop(DESCRIPTION, flavor.description)
        units = remaining.pop(UNITS, str(flavor.units))
        _refuse_changes(_flavor_metadata(flavor), remaining)
        if description is None or units is None or not _is_count(units):
            raise Invalid("A host flavor requires a description and a whole number of units.")
        host_flavors.update(tx, flavor.flavor_id, description, int(units), now)

    def add_host(self, tx: Tx, aggregate: Aggregate, host: Host, now: datetime) -> None:
        host_flavors.add_host(tx, self._flavor(tx, aggregate), host.name, now)

    def remove_host(self, tx: Tx, aggregate: Aggregate, host: Host, now: datetime) -> None:
        host_flavors.remove_host(tx, self._flavor(tx, aggregate), host.name, now)

    def delete(self, tx: Tx, aggregate: Aggregate, now: datetime) -> None:
        host_flavors.delete(tx, self._flavor(tx, aggregate).flavor_id)

    def _flavor(self, tx: Tx, aggregate: Aggregate) -> HostFlavor:
        return host_flavors.by_aggregates(tx, [aggregate.id])[aggregate.id]


class PcloudAggregates(AggregateOwner):
    """Handles edits of an aggregate that represents a pcloud."""

    def __init__(self, context: PcloudContext, allowed: str) -> None:
        self._context = context
        self._allowed = allowed

    def metadata(self, tx: Tx, kept: Sequence[Aggregate]) -> Mapping[int, Mapping[str, str]]:
        found = pclouds.by_aggregates(tx, [each.id for each in kept])
        whole = list(found.values())
        projects, members = pclouds.projects(tx, whole), hosts.of_pclouds(tx, whole)
        return {
            aggregate_id: _pcloud_metadata(
                pcloud,
                {f"{PREFIX}{each}": self._allowed for each in projects.get(pcloud.id, {})},
                members.get(pcloud.id, ()),
            )
            for aggregate_id, pcloud in found.items()
        }

    def keeps_key(self, key: str) -> bool:
        return key.startswith(PREFIX) or key in RATIOS

    def set_metadata(
        self, tx: Tx, aggregate: Aggregate, edits: Mapping[str, str | None], now: datetime
    ) -> None:
        """Change a pcloud's name, owner, projects or ratios, or enable or disable its hosts."""
        pcloud = self._pcloud(tx, aggregate)
        present = self.metadata(tx, [aggregate])[aggregate.id]
        changed = {key: text for key, text in edits.items() if present.get(key) != text}
        facts: dict[str, Any] = {
            field: _ratio(key, changed.pop(key)) for key, field in RATIOS.items() if key in changed
        }
        if NAME in changed:
            facts["name"] = _name(changed.pop(NAME))
        owner = changed.pop(OWNER, pcloud.project_id)
        if owner is None:
            raise Invalid("A pcloud must have an owner.")
        pcloud = pclouds.update(tx, pcloud, facts, self._context)
        pcloud = pclouds.transfer(tx, pcloud, owner, self._context)
        for key, text in changed.items():
            self._set(tx, pcloud, key, text, present)

    def _set(
        self, tx: Tx, pcloud: Pcloud, key: str, text: str | None, present: Mapping[str, str]
    ) -> None:
        project_id = project_of(key)
        if project_id is not None and text is None:
            pclouds.drop(tx, pcloud, project_id, self._context)
        elif project_id is not None and text == self._allowed:
            pclouds.authorize(tx, pcloud, project_id, self._context)
        elif key in present and key.startswith(HOST_STATE) and text in (ENABLED, DISABLED):
            member = hosts.by_machine(tx, key.removeprefix(HOST_STATE))
            assert member is not None, "the key names a host of the pcloud"
            is_enabled = text == ENABLED
            hosts.set_state(tx, pcloud, member, self._context, is_enabled=is_enabled)
        else:
            _refuse_changes(present, {key: text})

    def add_host(self, tx: Tx, aggregate: Aggregate, host: Host, now: datetime) -> None:
        """Allocate exactly this host to the pcloud, under a generated name."""
        hosts.allocate_this(tx, self._pcloud(tx, aggregate), host, self._context)

    def remove_host(self, tx: Tx, aggregate: Aggregate, host: Host, now: datetime) -> None:
        pcloud, member = self._pcloud(tx, aggregate), hosts.by_row(tx, host.id)
        assert member is not None, "a host of the aggregate is a host of the pcloud"
        hosts.release(tx, pcloud, member, self._context)

    def delete(self, tx: Tx, aggregate: Aggregate, now: datetime) -> None:
        pclouds.delete(tx, self._pcloud(tx, aggregate), self._context)

    def _pcloud(self, tx: Tx, aggregate: Aggregate) -> Pcloud:
        return pclouds.by_aggregates(tx, [aggregate.id])[aggregate.id]


def _flavor_metadata(flavor: HostFlavor) -> dict[str, str]:
    return {
        TYPE: POOL_TYPE,
        FLAVOR_ID: flavor.flavor_id,
        DESCRIPTION: flavor.description,
        UNITS: str(flavor.units),
    }


def _pcloud_metadata(
    pcloud: Pcloud, projects: Mapping[str, str], hosts: Iterable[PcloudHost]
) -> dict[str, str]:
    metadata = {TYPE: PCLOUD_TYPE, ID: pcloud.uuid, NAME: pcloud.name, OWNER: pcloud.project_id}
    ratios = {CPU_RATIO: pcloud.cpu_ratio, RAM_RATIO: pcloud.ram_ratio}
    metadata |= {key: f"{ratio:.15g}" for key, ratio in ratios.items() if ratio is not None}
    metadata |= projects
    for host in hosts:
        metadata[f"{HOST}{host.name}"] = host.hostname
        metadata[f"{HOST_STATE}{host.hostname}"] = ENABLED if host.is_enabled else DISABLED
    return metadata


def _refuse_changes(present: Mapping[str, str], changes: Mapping[str, str | None]) -> None:
    """Raise :class:`Invalid` for the first key whose value would change."""
    for key, text in sorted(changes.items()):
        if present.get(key) != text:
            raise Invalid(f"The key {key} is read-only.")


def _is_count(text: str) -> bool:
    is_number = text.isascii() and text.isdigit() and len(text) <= UNITS_DIGITS_MAX
    return is_number and int(text) <= UNIT_MAX


def _ratio(key: str, text: str | None) -> float | None:
    if text is None:
        return None
    ratio = number_of(text)
    if ratio is None or not RATIO_MIN <= ratio <= RATIO_MAX:
        raise Invalid(f"{key} must be a number from {RATIO_MIN} to {RATIO_MAX:.0f}.")
    return ratio


def _name(text: str | None) -> str:
    if text is None or not is_name(text):
        raise Invalid(
            f"A pcloud's name must have 1 to {NAME_MAX} printable characters, without white "
            "space at either end."
        )
    return text
