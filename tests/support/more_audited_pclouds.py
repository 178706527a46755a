"""Plants more defects of pclouds: each violates a single part of an invariant.

Always true: only that part is violated, in a cloud that
:func:`tests.support.audited_pclouds.furnish` has furnished.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from innkeeper.domain.hosts import Dedication
from innkeeper.store.tables import compute, pclouds, placement
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.placement import aggregates as placement_aggregates
from innkeeper.systems.placement import providers
from tests.support.audited_pclouds import PCLOUD
from tests.support.clouds import NOW

OTHER = "b0000000-0000-4000-8000-000000000003"
RUN = {
    "pcloud_uuid": PCLOUD,
    "project_id": "project",
    "host_name": "a",
    "flavor_id": "large",
    "units": 1,
    "started_at": NOW,
}
Plant = Callable[[Tx, Any], object]


class Fault(NamedTuple):
    """The kind of an audit's finding, its text, and the function that plants the defect."""

    kind: str
    said: str
    plant: Plant


def _host(name: str, **values: Any) -> Plant:
    table = compute.hosts
    return lambda tx, _: tx.execute(table.update().where(table.c.name == name).values(**values))


def _emptied(**values: Any) -> Plant:
    """Change the first host's row while it has no servers."""

    def plant(tx: Tx, it: Any) -> None:
        tx.execute(compute.servers.update().values(host=None))
        _host("h0", **values)(tx, it)

    return plant


def _line(**values: Any) -> Plant:
    table = placement.inventories
    return lambda tx, it: tx.execute(
        table.update()
        .where(table.c.resource_provider_id == it.provider_ids["h1"])
        .where(table.c.resource_class_id == it.class_ids["VCPU"])
        .values(**values)
    )


def _period(**values: Any) -> Plant:
    return lambda tx, _: tx.execute(pclouds.billing_periods.update().values(**values))


def _billed_too(name: str) -> Plant:
    return lambda tx, _: tx.execute(
        pclouds.billing_periods.insert(), {**RUN, "host_id": hosts.by_name(tx, name).id}
    )


def _replaced(units: int, ended_at: datetime | None = None) -> Plant:
    """Replace the host, and set the end of its billing period."""

    def plant(tx: Tx, _: Any) -> None:
        tx.execute(pclouds.pcloud_hosts.update().values(is_replaced=True, units=units))
        tx.execute(pclouds.billing_periods.update().values(ended_at=ended_at))

    return plant


def _resident(*named: str) -> Plant:
    table = compute.servers
    values = {"host": "h1", "hints": {"pcloud": list(named)} if named else {}}
    return lambda tx, it: tx.execute(
        table.update().where(table.c.uuid == it.first).values(**values)
    )


def _kept_row(tx: Tx) -> int:
    """Return the row of the host flavor's aggregate."""
    return int(tx.execute(sa.select(pclouds.host_flavors.c.aggregate_id)).scalar_one())


def _stray(tx: Tx, _: Any) -> None:
    link = {"aggregate_id": _kept_row(tx), "host_id": hosts.by_name(tx, "h0").id}
    tx.execute(compute.aggregate_hosts.insert(), link)


def _pooled(said: str | None, to: str | None) -> str:
    return f"host h0 has the dedication {(said, to)} in its row, but should have {(None, None)}"


def _left(tx: Tx, _: Any) -> None:
    table = compute.aggregate_hosts
    tx.execute(table.delete().where(table.c.aggregate_id == _kept_row(tx)))


def _mirrored_too(tx: Tx, it: Any) -> None:
    link = {"resource_provider_id": it.provider_ids["h0"], "aggregate_uuid": PCLOUD}
    tx.execute(placement.resource_provider_aggregates.insert(), link)


def _unmirrored(tx: Tx, it: Any) -> None:
    table = placement.resource_provider_aggregates
    is_it = table.c.aggregate_uuid == PCLOUD
    tx.execute(table.delete().where(is_it))


def _served_by_a_pool(tx: Tx, _: Any) -> None:
    providers.create(tx, OTHER, "pool", None, now=NOW)
    placement_aggregates.join(tx, OTHER, PCLOUD, NOW)


def _paid_as(name: str, pcloud: str, units: int, project: str) -> str:
    return f"host {name} of pcloud {pcloud}, with {units} unit(s) for project {project}"


RIGHT = _paid_as("a", PCLOUD, 1, "project")
HALF = {"VCPU": [3.0, 1.0, 0]}
FAULTS: Mapping[str, Fault] = {
    "open, as its row says": Fault(
        "wrong-dedication",
        f"has the dedication {(Dedication.OPEN, PCLOUD)} in its row, "
        f"but should have {(Dedication.CLOSED, PCLOUD)}",
        _host("h1", dedication=Dedication.OPEN),
    ),
    "pooled, and in no pool": Fault(
        "wrong-dedication", _pooled(Dedication.POOLED, None), _emptied(dedication=Dedication.POOLED)
    ),
    "closed, and in no pool": Fault(
        "wrong-dedication",
        _pooled(Dedication.CLOSED, OTHER),
        _emptied(dedication=Dedication.CLOSED, dedicated_to=OTHER),
    ),
    "in an aggregate, and in no pool": Fault(
        "stray-host", "host h0 is wrongly in aggregate ", _stray
    ),
    "in a pool, and in no aggregate": Fault(
        "stray-host", "host h1 is missing from aggregate ", _left
    ),
    "in an aggregate at Placement alone": Fault(
        "stray-host", "host h0 is wrongly in aggregate ", _mirrored_too
    ),
    "in no aggregate at Placement alone": Fault(
        "stray-host", "host h1 is missing from aggregate ", _unmirrored
    ),
    "a server that names nothing": Fault(
        "foreign-server", f"of pcloud {PCLOUD}, which the server's hints do not name", _resident()
    ),
    "a server that names another pcloud": Fault(
        "foreign-server",
        f"of pcloud {PCLOUD}, which the server's hints do not name",
        _resident(OTHER),
    ),
    "all at once too often": Fault(
        "wrong-ratio",
        "has an allocation ratio of 2 and a max_unit of 5 for VCPU, "
        "but should have a ratio of 2 and a max_unit of at most 4",
        _line(max_unit=5),
    ),
    "another ratio in force": Fault(
        "wrong-ratio",
        "has an allocation ratio of 7 and a max_unit of 4 for VCPU, "
        "but should have a ratio of 2 and a max_unit of at most 4",
        _line(allocation_ratio=7.0),
    ),
    "another ratio in its row": Fault(
        "wrong-ratio",
        "host h1 has the ratios {'VCPU': 3.0}, but should have {'VCPU': 2.0}",
        _host("h1", kept_ratios=HALF),
    ),
    "no ratio in its row": Fault(
        "wrong-ratio",
        "host h1 has the ratios {}, but should have {'VCPU': 2.0}",
        _host("h1", kept_ratios=sa.null()),
    ),
    "ratios, and in no pcloud": Fault(
        "wrong-ratio",
        "host h0 is in no pcloud, but has the ratios of a pcloud",
        _host("h0", kept_ratios=HALF),
    ),
    "paid twice": Fault("wrong-run", "host h1 has 2 open billing periods", _billed_too("h1")),
    "paid after its release": Fault("wrong-run", "is billed, but should not be", _billed_too("h0")),
    "paid after it was replaced": Fault("wrong-run", "is billed, but should not be", _replaced(0)),
    "replaced, with units, and not paid": Fault(
        "wrong-run", "host h1 has 0 open billing periods", _replaced(1, ended_at=NOW)
    ),
    "paid for another pcloud": Fault(
        "wrong-run",
        f"as {_paid_as('a', OTHER, 1, 'project')}, but should be billed as {RIGHT}",
        _period(pcloud_uuid=OTHER),
    ),
    "paid by another project": Fault(
        "wrong-run",
        f"as {_paid_as('a', PCLOUD, 1, 'other')}, but should be billed as {RIGHT}",
        _period(project_id="other"),
    ),
    "paid under another name": Fault(
        "wrong-run",
        f"as {_paid_as('b', PCLOUD, 1, 'project')}, but should be billed as {RIGHT}",
        _period(host_name="b"),
    ),
    "paid with other units": Fault(
        "wrong-run",
        f"as {_paid_as('a', PCLOUD, 9, 'project')}, but should be billed as {RIGHT}",
        _period(units=9),
    ),
}
"""The faults by description. Each is planted in a cloud that has no other fault."""
SOUND: Mapping[str, Plant] = {
    "replaced, and not paid": _replaced(0, ended_at=NOW),
    "replaced, with units, and paid": _replaced(1),
    "a provider that is no host, in an aggregate at Placement": _served_by_a_pool,
    "a server that names this pcloud too": _resident(OTHER, PCLOUD),
    "units of a flavor that changed": lambda tx, _: tx.execute(
        pclouds.host_flavors.update().values(units=9)
    ),
}
"""Data that looks like a defect, but is valid."""
