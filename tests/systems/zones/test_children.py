"""Facts about child zones that polls find out."""

from __future__ import annotations

import os

from innkeeper.domain.zone_tree import Hop, TreeRequest
from innkeeper.store.transactions import Store
from innkeeper.systems.identity.secret_boxes import SecretBox
from innkeeper.systems.zones import children, parents
from innkeeper.systems.zones.children import Reached
from tests.support.audited_zones import CHILD, add_child
from tests.support.clouds import Numbers
from tests.support.stores import NOW

FAILURES_MAX = 2
OWN, OTHER = "d0000000-0000-4000-8000-000000000001", "d0000000-0000-4000-8000-000000000002"


def test_a_child_is_inactive_after_failures_in_a_row_and_back_at_the_next_answer(
    store: Store,
) -> None:
    reached = Reached(OTHER, 3.0, {"hosts": 2.0})
    with store.write() as tx:
        add_child(tx)
        children.record_failure(tx, CHILD, "no answer", FAILURES_MAX, NOW)
        assert children.get(tx, CHILD).takes_servers
        children.record_success(tx, CHILD, reached, NOW)
        for failures in (1, 2):
            children.record_failure(tx, CHILD, "no answer", FAILURES_MAX, NOW)
            found = children.get(tx, CHILD)
            assert found.state.failures == failures
            assert found.takes_servers == (failures < FAILURES_MAX)
        children.record_success(tx, CHILD, reached, NOW)
        found = children.get(tx, CHILD)
        assert found.takes_servers
        assert (found.state.failures, found.state.capabilities) == (0, {"hosts": 2.0})
        children.record_failure(tx, OWN, "nobody", FAILURES_MAX, NOW)
        assert children.found(tx, OWN) is None


def test_a_child_must_stay_the_zone_that_it_was(store: Store) -> None:
    reached = Reached(OTHER, 3.0, {})
    with store.write() as tx:
        child = add_child(tx)
        assert children.fault_of(child, reached, OWN) is None
        assert "itself" in str(children.fault_of(child, reached, OTHER))
        children.record_success(tx, CHILD, reached, NOW)
        child = children.get(tx, CHILD)
    assert children.fault_of(child, reached, OWN) is None
    assert "another zone" in str(children.fault_of(child, Reached(CHILD, 3.0, {}), OWN))


def test_a_child_that_is_above_too_is_noted_and_stays_usable(store: Store) -> None:
    with store.write() as tx:
        add_child(tx)
        children.record_success(tx, CHILD, Reached(OTHER, 3.0, {}), NOW, is_above=True)
        found = children.get(tx, CHILD)
    assert found.takes_servers
    assert "above" in str(found.state.last_error)


def test_the_zones_above_are_those_that_polls_told(store: Store) -> None:
    box = SecretBox([b"k" * 32], os.urandom)
    with store.write() as tx:
        parent, _ = parents.create(tx, "up", (), {}, box=box, ids=Numbers(), now=NOW)
        tree = TreeRequest("r", ("no id", OTHER, OWN), 1, 1000, "h.invalid")
        parents.note_ancestors(tx, Hop("1", parent, "GET", "/", "", NOW, tree))
        assert parents.ancestors(tx) == (OTHER, OWN)
        parents.change(tx, parent.uuid, {"is_enabled": False}, NOW)
        assert parents.ancestors(tx) == ()
