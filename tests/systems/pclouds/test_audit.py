"""The pclouds room's invariants, one by one: an audit finds faults and repairs them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa

from innkeeper.store.backends import catalogue
from innkeeper.store.tables import pclouds
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.pclouds import audit
from tests.support import audited, audited_pclouds
from tests.support.audited import Audited
from tests.support.clouds import NOW
from tests.support.databases import MIGRATED
from tests.support.more_audited_pclouds import FAULTS, SOUND

World = tuple[Store, Audited]
LATER = NOW + timedelta(hours=1)
Period = tuple[str, str, int, datetime, datetime | None]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A cloud with a pcloud of one host, which every test leaves unchanged."""
    with MIGRATED["sqlite"](tmp_path_factory.mktemp("audited")) as url:
        backend = catalogue.of_url(url)
        store = Store(backend, backend.engines(url, readers_max=1, busy_timeout_s=5.0))
        it = audited.furnish(store)
        with store.write() as tx:
            audited_pclouds.furnish(tx)
        yield store, it
        store.dispose()


class Undone(Exception):
    """Rolls a transaction back."""


def said(tx: Tx) -> list[tuple[str, str]]:
    return [(each.invariant.kind, each.text) for each in audit.findings(tx)]


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found_and_repaired(world: World, fault: str) -> None:
    store, it = world
    expected = FAULTS[fault]
    with pytest.raises(Undone), store.write() as tx:
        assert said(tx) == []
        expected.plant(tx, it)
        ((kind, text),) = said(tx)
        assert kind == expected.kind
        assert expected.said in text
        repair = audit.REPAIRS.get(kind)
        if repair is not None:
            keys = [each.key for each in audit.findings(tx)]
            assert len(repair(tx, keys, LATER)) == 1
            assert said(tx) == []
            assert repair(tx, keys, LATER) == []
        raise Undone


@pytest.mark.parametrize("plant", SOUND)
def test_valid_states_are_not_findings(world: World, plant: str) -> None:
    store, it = world
    with pytest.raises(Undone), store.write() as tx:
        SOUND[plant](tx, it)
        assert said(tx) == []
        raise Undone


def periods(tx: Tx) -> list[Period]:
    table = pclouds.billing_periods
    query = sa.select(
        table.c.project_id, table.c.host_name, table.c.units, table.c.started_at, table.c.ended_at
    )
    return [tuple(row) for row in tx.execute(query.order_by(table.c.id))]


@pytest.mark.parametrize(
    ("fault", "wrong"),
    [
        ("paid by another project", [("other", "a", 1)]),
        ("paid with other units", [("project", "a", 9)]),
        ("paid twice", [("project", "a", 1), ("project", "a", 1)]),
    ],
)
def test_a_repair_ends_wrong_billing_periods_and_begins_a_right_one(
    world: World, fault: str, wrong: list[tuple[str, str, int]]
) -> None:
    store, it = world
    with pytest.raises(Undone), store.write() as tx:
        FAULTS[fault].plant(tx, it)
        keys = [each.key for each in audit.findings(tx)]
        audit.pay_right(tx, keys, LATER)
        ended = [(*each, NOW, LATER) for each in wrong]
        assert periods(tx) == [*ended, ("project", "a", 1, LATER, None)]
        raise Undone
