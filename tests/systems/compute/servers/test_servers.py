"""Servers in every store: lookup, paging, and state changes that happen only once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from innkeeper.domain.compute import Server, Status, Task
from innkeeper.domain.errors import ConcurrentUpdate
from innkeeper.domain.listing import ServerSelection, TagCondition, parse_pattern
from innkeeper.store.queries.compute import quota_usages, servers, tree_pages
from innkeeper.store.tables import compute as compute_tables
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.compute.servers import servers as server_rules
from innkeeper.systems.compute.servers.servers import Failed
from tests.support.query_steps import steps_of
from tests.support.server_rows import NOON, row, uuid

MANY = 40
"""The number of agents' results that share a statement."""


def boot(tx: Tx, *rows: dict[str, Any]) -> None:
    """Write servers as booting does, with their quota usage."""
    servers.insert_many(tx, rows)
    for each in rows:
        quota_usages.add_usage(tx, each["project_id"], 1, each["vcpus"], each["memory_mb"])


def test_what_was_written_is_read(store: Store) -> None:
    with store.write() as tx:
        boot(tx, row(1, tags=["b", "a"], metadata={"k": "v"}, fault={"code": 500}))
    with store.read() as tx:
        found = servers.by_uuid(tx, uuid(1))
        assert servers.by_uuid(tx, uuid(2)) is None
    assert isinstance(found, Server)
    assert (found.tags, found.metadata, found.fault) == (("b", "a"), {"k": "v"}, {"code": 500})
    assert (found.created_at, found.locked_by) == (NOON, None)


def test_a_server_is_deleted_once(store: Store) -> None:
    with store.write() as tx:
        boot(tx, row(1), row(2))
    for is_first in (True, False):
        with store.write() as tx:
            assert (server_rules.finish_deletes(tx, [uuid(1)], NOON) == {uuid(1)}) is is_first
    with store.read() as tx:
        assert quota_usages.of_project(tx, "red") == quota_usages.QuotaUsage(1, 2, 512)
        assert servers.by_uuid(tx, uuid(1)) is None
        gone = servers.by_uuid(tx, uuid(1), is_deleted_wanted=True)
    assert gone is not None
    assert (gone.status, gone.deleted_at, gone.task_state) == (Status.DELETED, NOON, None)


def test_a_concurrent_update_changes_nothing(store: Store) -> None:
    marks: list[Callable[[Tx], None]] = [
        lambda tx: servers.mark_built(tx, [uuid(1), uuid(2)], NOON),
        lambda tx: servers.mark_failed(tx, {uuid(1): {}, uuid(2): {}}, NOON),
        lambda tx: servers.mark_kept(tx, {uuid(1): {}, uuid(2): {}}, NOON),
        lambda tx: servers.mark_deleted(tx, [uuid(1), uuid(2)], NOON),
    ]
    with store.write() as tx:
        boot(tx, row(1), row(2, deleted_at=NOON))
    for mark in marks:
        with pytest.raises(ConcurrentUpdate), store.write() as tx:
            mark(tx)
    with store.read() as tx:
        found = servers.by_uuid(tx, uuid(1))
    assert found is not None
    assert (found.status, found.fault) == (Status.BUILD, None)


def build(tx: Tx) -> bool:
    """The agent of host ``left`` has built the server."""
    return bool(server_rules.finish_builds(tx, {uuid(1): "left"}, NOON))


def build_elsewhere(tx: Tx) -> bool:
    """Another host's agent reports that it built the server."""
    return bool(server_rules.finish_builds(tx, {uuid(1): "right"}, NOON))


def fail(tx: Tx) -> bool:
    """The agent of host ``left`` has failed."""
    return bool(server_rules.fail_builds(tx, [Failed(uuid(1), "left", "No disk.")], NOON))


def go(tx: Tx) -> bool:
    """The server is deleted."""
    return bool(server_rules.finish_deletes(tx, [uuid(1)], NOON))


@pytest.mark.parametrize(
    ("reports", "changed", "status"),
    [
        ([build, build], [True, False], Status.ACTIVE),
        ([build, fail], [True, False], Status.ACTIVE),
        ([fail, build], [True, False], Status.ERROR),
        ([fail, fail], [True, False], Status.ERROR),
        ([build_elsewhere], [False], Status.BUILD),
        ([go, build, fail], [True, False, False], Status.DELETED),
    ],
)
def test_late_and_repeated_reports_change_nothing(
    store: Store, reports: list[Callable[[Tx], bool]], changed: list[bool], status: str
) -> None:
    with store.write() as tx:
        boot(tx, row(1, host="left"))
        assert [report(tx) for report in reports] == changed
        found = servers.by_uuid(tx, uuid(1), is_deleted_wanted=True)
    assert found is not None
    assert found.status == status
    assert found.host == (None if status == Status.ERROR else "left")


def test_a_server_being_deleted_stays_so_when_its_build_ends(store: Store) -> None:
    for report, status in ((build, Status.ACTIVE), (fail, Status.ERROR)):
        with store.write() as tx:
            tx.execute(compute_tables.servers.delete())
            boot(tx, row(1, host="left", task_state=Task.DELETING))
            assert report(tx)
            found = servers.by_uuid(tx, uuid(1))
            assert found is not None
            assert (found.status, found.task_state) == (status, Task.DELETING)


def select(tx: Tx, **selection: Any) -> list[str]:
    """The names of the servers in a selection."""
    selection.setdefault("limit", 100)
    return [each.name for each in servers.page(tx, ServerSelection(**selection), None)]


@pytest.mark.parametrize(
    "sort",
    [
        (("created_at", True),),
        (("created_at", False),),
        (("key_name", True), ("created_at", False)),
        (("launched_at", False), ("name", True)),
        (("has_config_drive", True), ("key_name", False), ("created_at", True)),
    ],
)
@pytest.mark.parametrize("exact", [{}, {"host": ("h1",)}])
def test_pages_follow_each_other_without_a_gap(
    store: Store, sort: tuple[tuple[str, bool], ...], exact: dict[str, tuple[str]]
) -> None:
    with store.write() as tx:
        boot(
            tx,
            *(
                row(
                    number,
                    host="h1",
                    key_name=("a", None, "b")[number % 3],
                    launched_at=NOON + timedelta(microseconds=number % 4) if number % 2 else None,
                    has_config_drive=number % 5 == 0,
                )
                for number in range(20)
            ),
        )
    with store.read() as tx:
        whole = servers.page(tx, ServerSelection(limit=100, sort=sort, exact=exact), None)
        pages: list[Server] = []
        while len(pages) < len(whole):
            behind = pages[-1] if pages else None
            page = servers.page(tx, ServerSelection(limit=3, sort=sort, exact=exact), behind)
            assert page
            pages += page
        assert not servers.page(tx, ServerSelection(limit=3, sort=sort, exact=exact), pages[-1])
    assert len(whole) == 20
    assert [each.uuid for each in pages] == [each.uuid for each in whole]
    assert len({each.uuid for each in whole}) == 20


def test_patterns_mean_the_same_in_every_store(store: Store) -> None:
    names = ["Web-1", "web_2", "50% off", "back\\slash", "WEBS"]
    with store.write() as tx:
        boot(tx, *(row(number, name=name) for number, name in enumerate(names)))
    found = {
        "^web": ["WEBS", "web_2", "Web-1"],
        "%": ["50% off"],
        "_": ["web_2"],
        "\\\\": ["back\\slash"],
        "b.1$": ["Web-1"],
        "w.*s": ["WEBS"],
    }
    with store.read() as tx:
        for text, expected in found.items():
            like = {"name": parse_pattern(text)}
            assert sorted(select(tx, like=like)) == sorted(expected), text


def test_tags_are_case_sensitive_and_may_have_quotes(store: Store) -> None:
    with store.write() as tx:
        boot(tx, row(1, tags=["Web"]), row(2, tags=["web", 'a"b']), row(3, tags=["é"]))
    with store.read() as tx:
        assert select(tx, tags=TagCondition(every=("web",))) == ["server-2"]
        assert select(tx, tags=TagCondition(every=("b",))) == []
        assert select(tx, tags=TagCondition(every=('a"b', "web"))) == ["server-2"]
        assert select(tx, tags=TagCondition(some=("é", "Web"))) == ["server-3", "server-1"]
        assert select(tx, tags=TagCondition(not_some=("web", "é"))) == ["server-1"]
        assert select(tx, tags=TagCondition(not_every=("web", 'a"b'))) == ["server-3", "server-1"]


def test_metadata_is_found_by_key_and_value(store: Store) -> None:
    with store.write() as tx:
        boot(tx, row(1, metadata={"a": "b"}), row(2, metadata={"x": ',"a":"b"', "c": "d"}))
    with store.read() as tx:
        assert select(tx, metadata={"a": "b"}) == ["server-1"]
        assert select(tx, metadata={"c": "d"}) == ["server-2"]
        assert select(tx, metadata={"c": "D"}) == []


def test_many_servers_are_found_by_their_ids(store: Store) -> None:
    """SQLite must not read all servers that are not deleted."""
    if store.backend.name != "sqlite":
        return
    ids = [uuid(number) for number in range(MANY)]
    with store.write() as tx:
        boot(tx, *(row(number) for number in range(MANY)))
        looked = steps_of(tx, lambda tx: servers.alive(tx, ids))
        built = steps_of(tx, lambda tx: servers.mark_built(tx, ids, NOON))
        deleted = steps_of(tx, lambda tx: servers.mark_deleted(tx, ids, NOON))
    (found,) = {*looked, *built, *deleted}
    assert found.endswith("(uuid=?)")


@pytest.mark.parametrize("names", [("host",), ("batch_id",), ("batch_id", "project_id")])
def test_the_servers_of_a_host_or_request_are_found_before_they_are_sorted(
    store: Store, names: tuple[str, ...]
) -> None:
    """SQLite must not read the servers of all hosts, or of the whole project, in order."""
    if store.backend.name != "sqlite":
        return
    selection = ServerSelection(limit=3, exact=dict.fromkeys(names, ("x",)))
    with store.read() as tx:
        here = steps_of(tx, lambda tx: servers.page(tx, selection, None))
        in_tree = steps_of(tx, lambda tx: tree_pages.page_in_tree(tx, selection, None))
    assert f"({names[0]}=?" in here[0]
    assert f"({names[0]}=?" in in_tree[0]


def test_the_default_page_is_found_by_an_index(store: Store) -> None:
    with store.write() as tx:
        boot(tx, *(row(number) for number in range(20)))
    if store.backend.name != "sqlite":
        return
    with store.read() as tx:
        selection = ServerSelection(limit=3, exact={"project_id": ("red",)})
        statement = servers.statement(tx, selection, None)
        text = statement.compile(tx.engine, compile_kwargs={"literal_binds": True})
        plan = " ".join(str(each) for each in tx.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}"))
    assert "USING INDEX" in plan
    assert "TEMP B-TREE" not in plan
