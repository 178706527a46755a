"""The queries of a tree of zones never read all servers."""

from __future__ import annotations

import os
from uuid import uuid4

from innkeeper.engine.zones import known_children
from innkeeper.store.transactions import Store
from innkeeper.systems.compute.servers import zone_servers
from innkeeper.systems.identity import secret_boxes
from innkeeper.systems.identity.secret_boxes import SecretBox
from innkeeper.systems.zones import remote
from tests.support.audited_zones import CHILD, add_child
from tests.support.query_steps import steps_of
from tests.support.stores import NOW

INDEX = "USING INDEX ix_zone_servers_child_id_project_id"
MANY = 1000
"""The number of servers for which a zone parent asks at once."""


def test_lists_look_once_into_an_index_for_each_child(store: Store) -> None:
    if store.backend.name != "sqlite":
        return
    with store.read() as tx:
        of_all = steps_of(tx, lambda tx: remote.children_of_project(tx, None))
        of_one = steps_of(tx, lambda tx: remote.children_of_project(tx, "a"))
    assert f"SEARCH zone_servers {INDEX} (child_id=?)" in of_all
    assert f"SEARCH zone_servers {INDEX} (child_id=? AND project_id=?)" in of_one


def test_a_zone_finds_the_servers_of_its_parent_by_their_ids(store: Store) -> None:
    if store.backend.name != "sqlite":
        return
    wanted = [str(uuid4()) for _ in range(MANY)]
    with store.read() as tx:
        steps = steps_of(tx, lambda tx: zone_servers.held(tx, "up:", wanted))
    found = [each for each in steps if "SEARCH servers" in each]
    assert len(found) == 1
    assert found[0].endswith("(uuid=?)")


def test_the_passwords_of_all_children_are_read_together(store: Store) -> None:
    box = SecretBox([b"k" * 32], os.urandom)
    other, lost = str(uuid4()), str(uuid4())
    with store.write() as tx:
        for uuid in (CHILD, other, lost):
            add_child(tx, uuid, uuid)
        for uuid in (CHILD, other):
            secret_boxes.keep(tx, box, f"child_zone.{uuid}", uuid.encode(), NOW)
        spoilt = SecretBox([b"x" * 32], os.urandom)
        secret_boxes.keep(tx, spoilt, f"child_zone.{lost}", b"hush", NOW)
    with store.read() as tx:
        known = known_children.load(tx, box)
        assert [each.password for each in known] == [CHILD, other, None]
        if store.backend.name == "sqlite":
            steps = steps_of(tx, lambda tx: known_children.load(tx, box))
            assert sum("secrets" in each for each in steps) == 1
