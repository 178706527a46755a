"""Kill the service at any moment: acknowledged writes exist once, and the sums are right.

``SIMULATION_KILLS`` and ``SIMULATION_SEED`` make longer and other runs.
"""

from __future__ import annotations

import os
import random
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.simulation.clients import (
    FLAVOR,
    FLAVOR_ID,
    HELD_OF_HOST,
    HELD_OF_POOL,
    POOL,
    SERVERS,
    Client,
    Holding,
    Ledger,
)
from tests.simulation.programs import Caller, Cloud, wait_until

KILLS = int(os.environ.get("SIMULATION_KILLS", "3"))
SEED = int(os.environ.get("SIMULATION_SEED", "2026"))
HOSTS = 4
HOST_SIZE = 10_000
CLIENTS = 6
RUN = (30, 150)
"""Least and most acknowledgements between a start and the next kill."""
JITTER_S = 0.02
"""A kill comes at any moment of a commit, not only right after an answer."""
AGENT_DIES_TOO = 0.5
SETTLE_WITHIN_S = 60.0
PER_KILL_S = 10
LOG_LINES = 60
DATABASE = "innkeeper.sqlite3"
AGGREGATE = "60000000-0000-4000-8000-000000000000"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180 + PER_KILL_S * KILLS)]


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """A running cloud; prints the ends of its logs, which pytest shows for a failed test."""
    made = Cloud(tmp_path, HOSTS, HOST_SIZE)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        sys.stdout.write(f"seed {SEED}, {KILLS} kills\n")
        for log in sorted(tmp_path.glob("*.log")):
            lines = log.read_text(errors="replace").splitlines()
            wanted = [line for line in lines if "level=info" not in line][-LOG_LINES:]
            sys.stdout.write("\n".join((f"--- {log.name}", *wanted, "")))


def test_nothing_acknowledged_is_lost(cloud: Cloud) -> None:
    with closing(cloud.caller()) as caller:
        run_and_check(cloud, caller)
    cloud.stop()
    clean = cloud.audit()
    assert clean.returncode == 0, clean.stdout + clean.stderr
    plant(cloud.data_dir / DATABASE)
    dirty = cloud.audit()
    assert dirty.returncode == 1, dirty.stdout + dirty.stderr
    assert "planted" in dirty.stdout


def run_and_check(cloud: Cloud, caller: Caller) -> None:
    """Run clients and kills on the cloud, then compare it with the acknowledgements."""
    flavor = {"id": FLAVOR_ID, "name": FLAVOR_ID, **FLAVOR}
    assert caller.call("POST", "/compute/v2.1/flavors", {"flavor": flavor}).status == 200
    hosts = cloud.providers(caller)
    add_pool(caller, hosts)
    ledgers = run_and_kill(cloud, hosts)
    wait_until(lambda: not unsettled(all_servers(caller)), "the agent", SETTLE_WITHIN_S)
    servers = all_servers(caller)
    check_ledgers(ledgers)
    check_servers(servers, ledgers)
    held = {each["id"]: holding(caller, each["id"]) for each in servers}
    check_holdings(caller, held, ledgers)
    check_sums(caller, cloud, held, ledgers)


def add_pool(caller: Caller, hosts: list[str]) -> None:
    """Give all hosts their disks: one pool, as large as their disks together."""
    path = "/placement/resource_providers"
    write(caller, "POST", path, {"name": "pool", "uuid": POOL})
    has = {"DISK_GB": {"total": HOSTS * HOST_SIZE}}
    body = {"resource_provider_generation": 0, "inventories": has}
    write(caller, "PUT", f"{path}/{POOL}/inventories", body)
    shares = {"resource_provider_generation": 1, "traits": ["MISC_SHARES_VIA_AGGREGATE"]}
    write(caller, "PUT", f"{path}/{POOL}/traits", shares)
    for each in (POOL, *hosts):
        write(caller, "PUT", f"{path}/{each}/aggregates", [AGGREGATE])


def write(caller: Caller, method: str, path: str, body: Any) -> None:
    """A request that must succeed."""
    answer = caller.call(method, path, body)
    assert answer.status < 300, answer.body


def run_and_kill(cloud: Cloud, providers: list[str]) -> list[Ledger]:
    """Keep clients busy while the service is killed repeatedly; returns their ledgers."""
    dice = random.Random(SEED)  # noqa: S311 - to be repeated, not to be secret
    over = threading.Event()
    clients = [Client(number, SEED, cloud.caller(), providers, over) for number in range(CLIENTS)]
    for each in clients:
        each.start()
    for _ in range(KILLS):
        wait_for_more(clients, dice.randint(*RUN))
        time.sleep(dice.uniform(0, JITTER_S))
        cloud.service.kill()
        if dice.random() < AGENT_DIES_TOO:
            cloud.agent.kill()
            cloud.agent.start()
        cloud.start_service()
    wait_for_more(clients, RUN[0])
    over.set()
    for each in clients:
        each.join(SETTLE_WITHIN_S)
    return [each.ledger for each in clients]


def wait_for_more(clients: list[Client], count: int) -> None:
    """Wait until this many more requests were acknowledged."""

    def acknowledged() -> int:
        return sum(each.ledger.acknowledged for each in clients)

    enough = acknowledged() + count
    wait_until(lambda: acknowledged() >= enough, "clients", SETTLE_WITHIN_S)


def all_servers(caller: Caller) -> list[Any]:
    """Every server, over all pages."""
    found: list[Any] = []
    marker = ""
    while True:
        path = f"{SERVERS}/detail?all_tenants=1&limit=1000{marker}"
        page = caller.call("GET", path).body["servers"]
        if not page:
            return found
        found += page
        marker = f"&marker={page[-1]['id']}"


def unsettled(servers: list[Any]) -> list[Any]:
    """Servers with a task that is not finished."""
    return [each for each in servers if each["OS-EXT-STS:task_state"] is not None]


def check_ledgers(ledgers: list[Ledger]) -> None:
    """The run was useful: many requests succeeded, some answers were lost, none was an error."""
    assert [accident for each in ledgers for accident in each.accidents] == []
    assert sum(len(each.booted) for each in ledgers) > KILLS
    assert sum(len(each.deleted) for each in ledgers) > 0
    assert sum(len(each.holdings) for each in ledgers) > KILLS
    assert sum(each.lost for each in ledgers) >= KILLS


def check_servers(servers: list[Any], ledgers: list[Ledger]) -> None:
    """Each acknowledged server exists once, each acknowledged deletion took effect."""
    names = Counter(each["name"] for each in servers)
    assert [name for name, count in names.items() if count > 1] == []
    there = {each["id"]: each for each in servers}
    asked = {name for each in ledgers for name in each.asked_names}
    assert names.keys() <= asked
    for ledger in ledgers:
        kept = ledger.booted.keys() - ledger.delete_asked
        assert kept <= there.keys(), "acknowledged servers are gone"
        assert not ledger.deleted & there.keys(), "deleted servers are still there"
        for uuid, name in ledger.booted.items():
            if uuid in there:
                assert there[uuid]["name"] == name
    broken = [each for each in servers if each["status"] != "ACTIVE"]
    assert broken == []


def holding(caller: Caller, consumer: str) -> Holding:
    """A consumer's allocations, as the Placement API shows them."""
    found = caller.call("GET", f"/placement/allocations/{consumer}").body["allocations"]
    return {provider: line["resources"] for provider, line in found.items()}


def check_holdings(caller: Caller, held: dict[str, Holding], ledgers: list[Ledger]) -> None:
    """Servers hold what their flavor says, deleted ones nothing, other consumers their claims."""
    for uuid, amounts in held.items():
        assert amounts.get(POOL) == HELD_OF_POOL, uuid
        assert [line for each, line in amounts.items() if each != POOL] == [HELD_OF_HOST], uuid
    for ledger in ledgers:
        for uuid in ledger.deleted:
            assert holding(caller, uuid) == {}
        for consumer, possible in ledger.holdings.items():
            held[consumer] = holding(caller, consumer)
            assert held[consumer] in possible, consumer


def check_sums(
    caller: Caller, cloud: Cloud, held: dict[str, Holding], ledgers: list[Ledger]
) -> None:
    """The usage of each provider is the sum of its consumers' allocations."""
    sums: dict[str, Counter[str]] = {each: Counter() for each in cloud.providers(caller)}
    for amounts in held.values():
        for provider, line in amounts.items():
            sums[provider].update(line)
    for provider, expected in sums.items():
        path = f"/placement/resource_providers/{provider}/usages"
        used = caller.call("GET", path).body["usages"]
        assert {name: amount for name, amount in used.items() if amount} == dict(expected)


def plant(database: Path) -> None:
    """Write an allocation of a consumer that does not exist, which no program of ours does."""
    store = sqlite3.connect(database)
    with store:
        store.execute(
            "INSERT INTO allocations (resource_provider_id, consumer_id, resource_class_id,"
            " used, created_at) SELECT resource_provider_id, 'planted', resource_class_id, 1,"
            " created_at FROM allocations LIMIT 1"
        )
    store.close()
