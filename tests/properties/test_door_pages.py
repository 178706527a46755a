"""Pages of lists over several pods: together they have each row once, whatever a pod's order is."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from innkeeper.clients.pod_logins import PodLogin
from innkeeper.clients.pods import PodAnswer, PodCall
from innkeeper.domain.door import SERVER, DoorCaller, DoorRequest, Json
from innkeeper.domain.pod_settings import Podding
from innkeeper.domain.pods import Pod, PodRouting
from innkeeper.engine.lateness import Lateness
from innkeeper.engine.pods.clouds import PodClouds
from innkeeper.engine.pods.list_orders import SORTS, ListOrder, RankedRow, Sort
from innkeeper.engine.pods.list_questions import PodListQuestion
from innkeeper.engine.pods.lists import Lists
from innkeeper.store.backends import catalogue
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.pods import routings
from tests.support.databases import sqlite_copy
from tests.support.pod_rows import add_pod
from tests.support.stores import NOW

CALLER = DoorCaller("acme", "user", is_admin=False)
REQUEST = DoorRequest(SERVER, "GET", "/servers", None, {}, "http://door", CALLER)
PODS, RECORDED, LISTED = 3, 4, 5
"""Each pod lists up to five servers, of which the door has recorded four."""
TIMES = st.sampled_from([None, *(f"2026-01-01T00:00:0{second}Z" for second in range(3))])
SERVERS = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["a", "A", "B", "b", "_", "Ä", None]),
        "created": TIMES.filter(bool),
        "updated": TIMES,
        "OS-EXT-STS:vm_state": st.sampled_from(["active", "error"]),
    }
)
WORLDS = st.tuples(
    *(
        st.lists(SERVERS, max_size=LISTED).flatmap(
            lambda rows: st.permutations(list(enumerate(rows)))
        )
        for _ in range(PODS)
    )
)
KEYS = st.lists(
    st.tuples(st.sampled_from(sorted(SORTS[SERVER])), st.booleans()),
    min_size=1,
    max_size=3,
    unique_by=lambda each: each[0],
)
Row = dict[str, Json]


def id_of(pod: int, number: int) -> str:
    """Return the id of a server. Servers of all pods take turns."""
    return f"{number}{pod}c00000-0000-4000-8000-000000000000"


class Cloud:
    """Plays all pods. Each has its ``rows`` in an order that only the pod itself knows.

    It also replaces the engine and the tenants of a door. Lists leave out the ``unlisted`` ids.
    """

    def __init__(self, store: Store, pods: Sequence[Pod]) -> None:
        self._store = store
        self.pods = pods
        self.rows: Mapping[str, Sequence[Row]] = {}
        self.unlisted: set[Json] = set()

    async def read(self, work: Callable[[Tx], Any]) -> Any:
        with self._store.read() as tx:
            return work(tx)

    async def of_project(self, pod: Pod, _: str) -> PodLogin:
        return PodLogin(pod.uuid, pod.pod_name, "", "", "", "", "acme", "", "")

    async def send(self, login: PodLogin, call: PodCall) -> PodAnswer:
        parts = urlsplit(call.target)
        rows, query = self.rows[login.uuid], dict(parse_qsl(parts.query))
        ids = [row["id"] for row in rows]
        if not parts.path.endswith("/detail"):
            row = rows[ids.index(parts.path.rpartition("/")[2])]
            return PodAnswer(200, {}, msgspec.json.encode({"server": row}))
        start, limit = 0, int(query["limit"])
        if "marker" in query:
            start = ids.index(query["marker"]) + 1
        left = [row for row in rows[start:] if row["id"] not in self.unlisted]
        body: dict[str, Json] = {"servers": left[:limit]}
        if len(left) > limit:
            body["servers_links"] = []
        return PodAnswer(200, {}, msgspec.json.encode(body))

    def pages(self, sort: Sort, limit: int, marker: str | None = None) -> list[list[str]]:
        """Return the ids on the pages of a list after a marker."""
        own: Any = self
        nobody: Any = None
        late = Lateness(1.0)
        clouds = PodClouds(own, own, nobody, Podding(), nobody, nobody, nobody, late)
        lists = Lists(clouds, own, nobody)
        found: list[list[str]] = []
        while len(found) <= PODS * LISTED:
            question = PodListQuestion(REQUEST, [], sort, limit, marker, "acme")
            page = asyncio.run(lists.page(question))
            found.append([row.id for row in map(_server, page.rows)])
            if not page.has_more:
                return found
            marker = page.last
        pytest.fail("the list does not end")


class _Server(msgspec.Struct):
    id: str


def _server(row: Json) -> _Server:
    return msgspec.json.decode(msgspec.json.encode(row), type=_Server)


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    """Provide pods. The door has recorded some of their servers."""
    with tempfile.TemporaryDirectory() as folder, sqlite_copy(Path(folder)) as url:
        backend = catalogue.of_url(url)
        store = Store(backend, backend.engines(url, readers_max=1, busy_timeout_s=5.0))
        with store.write() as tx:
            pods = [add_pod(tx, number) for number in range(PODS)]
            for pod, number in itertools.product(range(PODS), range(RECORDED)):
                uuid, row_id = id_of(pod, number), pods[pod].id
                routings.create(tx, PodRouting(0, uuid, uuid, row_id, "acme", SERVER, NOW, NOW))
        yield Cloud(store, pods)
        store.dispose()


def played(cloud: Cloud, world: Sequence[Sequence[tuple[int, Row]]]) -> None:
    """Give each pod its servers, in this order."""
    cloud.unlisted = set()
    cloud.rows = {
        cloud.pods[pod].uuid: [{**row, "id": id_of(pod, number)} for number, row in rows]
        for pod, rows in enumerate(world)
    }


@settings(max_examples=100)
@given(world=WORLDS, keys=KEYS, limit=st.integers(1, 4), is_sorted=st.booleans())
def test_pages_together_have_each_row_once(
    cloud: Cloud,
    world: Sequence[Sequence[tuple[int, Row]]],
    keys: list[tuple[str, bool]],
    limit: int,
    is_sorted: bool,
) -> None:
    order = ListOrder.of(SERVER, keys)
    played(cloud, world)
    if is_sorted:
        cloud.rows = {uuid: in_order(order, rows) for uuid, rows in cloud.rows.items()}
    pages = cloud.pages(keys, limit)
    told = list(itertools.chain(*pages))
    recorded = [id_of(*each) for each in itertools.product(range(PODS), range(RECORDED))]
    for rows in cloud.rows.values():
        expected = [row["id"] for row in rows if row["id"] in recorded]
        assert [uuid for uuid in told if uuid in expected] == expected
    assert len(told) == len(set(told))
    assert set(told) <= set(recorded)
    assert all(len(page) == limit for page in pages[:-1])
    if is_sorted:
        by_id = {str(row["id"]): row for rows in cloud.rows.values() for row in rows}
        ranks = [order.rank(by_id[uuid]) for uuid in told]
        assert not any(order.is_after(*pair) for pair in itertools.pairwise(ranks))


def in_order(order: ListOrder, rows: Sequence[Row]) -> list[Row]:
    """Return the rows of a pod in the order in which the door would have them."""
    by_id = {str(row["id"]): row for row in rows}
    ranked: list[RankedRow] = [(order.rank(row), uuid, row) for uuid, row in by_id.items()]
    order.sort(ranked)
    return [by_id[uuid] for _, uuid, _ in ranked]


@pytest.mark.parametrize("is_descending", [True, False])
def test_a_list_goes_on_after_a_marker_that_its_filters_leave_out(
    cloud: Cloud, is_descending: bool
) -> None:
    times = [f"2026-01-01T00:00:0{second}Z" for second in range(RECORDED)]
    rows: list[tuple[int, Row]] = [(each, {"created": time}) for each, time in enumerate(times)]
    played(cloud, [rows[::-1] if is_descending else rows] * PODS)
    marker = id_of(1, 2)
    cloud.unlisted = {marker}
    sort = [("created_at", is_descending)]
    told = list(itertools.chain(*cloud.pages(sort, 2, marker)))
    rest = [1, 0] if is_descending else [3]
    assert told == [id_of(2, 2), *(id_of(pod, each) for each in rest for pod in range(PODS))]
