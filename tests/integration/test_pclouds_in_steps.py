"""Changes of many whole hosts take several commits; services die between two commits.

The tests run on SQLite with one process, and on PostgreSQL with two workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from innkeeper.domain.pclouds import Pcloud
from innkeeper.store.backends import catalogue
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.pclouds import pclouds
from innkeeper.systems.pclouds.bulk_allocation import TAKEN_AT_ONCE
from innkeeper.systems.pclouds.ratio_rollout import ROLLED_OUT_AT_ONCE
from tests.simulation.programs import wait_until
from tests.support.databases import postgresql_url, sqlite_url
from tests.support.sites import Kind, Site, site

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]

CREATED, OK = httpx.codes.CREATED, httpx.codes.OK
KINDS = {"sqlite": Kind(sqlite_url), "postgresql": Kind(postgresql_url, options=("--workers", "2"))}
RED = "red-user:red"
STEPS = 5
TAKEN, SETTLED = STEPS * TAKEN_AT_ONCE, STEPS * ROLLED_OUT_AT_ONCE
BUSY_S = 5.0
ROUNDS_MAX = 10
"""The number of attempts to see a change half done, because it may be complete before that."""


@pytest.fixture(scope="module", params=sorted(KINDS))
def at(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A service on one kind of database."""
    folder = tmp_path_factory.mktemp("steps")
    with site(folder, KINDS[request.param], {"quota_pcloud_units": "-1"}) as made:
        yield made


def many(
    at: Site, uuid: str, flavor_id: str, token: str | None = None, count: int = TAKEN
) -> httpx.Response:
    """Request as many hosts as there are."""
    wanted = [{"name": name, "host_flavor": flavor_id} for name in names(count)]
    body = {"hosts": wanted, **({} if token is None else {"client_token": token})}
    return at.ask("POST", f"/compute/v2.1/os-pclouds/{uuid}/hosts", RED, json=body)


def names(count: int = TAKEN) -> list[str]:
    return [f"host-{number:02}" for number in range(count)]


def reported(answer: httpx.Response) -> tuple[int, list[str], list[Any]]:
    """Return an answer's status, its hosts' names, and the number of missing hosts."""
    body = answer.json()
    return answer.status_code, [each["name"] for each in body["hosts"]], body["failures"]


def is_half_way(
    at: Site, uuid: str, asked: Future[httpx.Response], look: Callable[[Tx, Pcloud], bool]
) -> bool:
    """Poll until a change is half done or complete; returns whether it is half done.

    There is no pause between two reads: a step takes a few hundredths of a second.
    """
    backend = catalogue.of_url(at.url)
    store = Store(backend, backend.engines(at.url, readers_max=1, busy_timeout_s=BUSY_S))
    is_seen = False
    while not is_seen and not asked.done():
        with store.read() as tx:
            is_seen = look(tx, pclouds.get(tx, uuid))
    store.dispose()
    return is_seen


def has_hosts(tx: Tx, pcloud: Pcloud) -> bool:
    return bool(pclouds.host_counts(tx, [pcloud]))


def is_rolling_out(_: Tx, pcloud: Pcloud) -> bool:
    return pcloud.is_rolling_out


def rolled_out_to(at: Site, uuid: str) -> int | None:
    """How far the rollout of ratios is; all other invariants hold meanwhile."""
    found = at.world().pcloud(uuid)
    assert found is not None
    return None if found["settled_to"] is None else int(found["settled_to"])


def lost(asked: Future[httpx.Response]) -> bool:
    """Whether a request got no answer."""
    try:
        asked.result()
    except httpx.TransportError:
        return True
    return False


def test_two_requests_with_one_token_take_turns(at: Site) -> None:
    at.add_pool("twice", TAKEN)
    uuid = at.pcloud(RED)
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(many, at, uuid, "twice", "try-1") for _ in range(2)]
        first, second = (each.result() for each in asked)
    assert reported(first) == (CREATED, names(), [])
    assert second.json() == first.json()
    assert [each["name"] for each in at.world().members_of(uuid)] == names()


def test_a_repeated_request_continues_after_a_crash(at: Site) -> None:
    at.add_pool("again", TAKEN)
    is_lost = False
    for turn in range(ROUNDS_MAX):
        uuid, token = at.pcloud(RED), f"try-{turn}"
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(many, at, uuid, "again", token)
            if is_half_way(at, uuid, asked, has_hosts):
                at.kill(0)
                is_lost = lost(asked)
                at.start(0)
        count = len(at.world().members_of(uuid))
        assert reported(many(at, uuid, "again", token)) == (CREATED, names(), [])
        assert [each["name"] for each in at.world().members_of(uuid)] == names()
        if is_lost and 0 < count < TAKEN:
            return
        give_back(at, uuid)
    pytest.fail("Nobody was caught half way.")


def give_back(at: Site, uuid: str) -> None:
    for name in names():
        assert at.release(RED, uuid, name).is_success


def test_ratios_come_to_all_hosts_after_a_crash(at: Site) -> None:
    at.add_pool("ratios", SETTLED)
    uuid = at.pcloud(RED)
    assert reported(many(at, uuid, "ratios", count=SETTLED))[0] == CREATED

    def change(ratio: float) -> httpx.Response:
        body = {"pcloud": {"cpu_allocation_ratio": ratio}}
        return at.ask("PUT", f"/compute/v2.1/os-pclouds/{uuid}", RED, json=body)

    done = change(2.0)
    assert (done.status_code, done.json()["pcloud"]["hosts_settling"]) == (OK, 0)
    assert in_force(at, uuid) == {2.0}
    listed = at.must("GET", "/compute/v2.1/os-aggregates")["aggregates"]
    (row,) = [each["id"] for each in listed if each["uuid"] == uuid]
    edit = {"set_metadata": {"metadata": {"cpu_allocation_ratio": "2.5"}}}
    at.must("POST", f"/compute/v2.1/os-aggregates/{row}/action", json=edit)
    assert in_force(at, uuid) == {2.5}
    for turn in range(ROUNDS_MAX):
        wanted = 3.0 + turn
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(change, wanted)
            if is_half_way(at, uuid, asked, is_rolling_out):
                at.kill(0)
                is_lost = lost(asked)
                is_left = rolled_out_to(at, uuid) is not None
                assert at.audit().returncode == 0
                at.start(0)
                if is_lost and is_left:
                    break
    else:
        pytest.fail("Nobody was caught half way.")
    # No request is needed: the service continues by itself.
    wait_until(lambda: rolled_out_to(at, uuid) is None, "the hosts that were left")
    assert in_force(at, uuid) == {wanted}
    audited = at.audit()
    assert audited.returncode == 0, audited.stdout + audited.stderr


def in_force(at: Site, uuid: str) -> set[float]:
    """The ratios of processors that are in force on a pcloud's hosts."""
    seen = at.world()
    providers = [seen.hosts[each["host_id"]]["provider_id"] for each in seen.members_of(uuid)]
    assert len(providers) == SETTLED
    return {seen.lines[each]["VCPU"].ratio for each in providers}
