"""Measures what would happen if every node of a Galera cluster took claims.

    python -m tests.simulation.experiments.galera_writers --seconds 10

Several processes claim from a few providers. Each process uses another node, although the rule is
that one node takes all writes. The acknowledgements are compared with the final state. It is no
test: it shows how Galera behaves, and ``docs/explanation/galera.md`` quotes it.

There are four ways of writing. ``turns``: each transaction first advances the row of the
queue, as the service does. ``generations``: only the generations of the providers. ``blind``: a
transaction reads a number and writes it back plus one, without any condition; with snapshot
isolation (``--snapshot ON``, the usual setting) no update should be lost. ``alone``: the same,
through one node only.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime

import sqlalchemy as sa

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.errors import Refusal
from innkeeper.domain.ids import ClassId, ConsumerUuid, ProviderId
from innkeeper.domain.placement import ConsumerClaim
from innkeeper.store import schema
from innkeeper.store.backends import catalogue
from innkeeper.store.backends.backend import Engines
from innkeeper.store.backends.mariadb import NEXT, Mariadb, number_of
from innkeeper.store.queries.placement import capacity, names
from innkeeper.store.tables.placement import allocations
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.placement import claims, inventories, providers
from tests.support.servers.galera import Galera, Node

NOW = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
PROVIDERS = 4
TOTAL = 400
WAYS = ("turns", "generations", "blind", "alone")
BLIND = ("blind", "alone")
SESSION = {"wsrep_sync_wait": "7", "innodb_snapshot_isolation": "ON"}
counter = sa.table("blind_counter", sa.column("id"), sa.column("number"))
READ = sa.select(counter.c.number)
Acknowledged = Counter[str]


def main() -> None:
    """Try every way, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--per-node", type=int, default=2)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--snapshot", choices=("ON", "OFF"), default="ON")
    given = parser.parse_args()
    SESSION["innodb_snapshot_isolation"] = given.snapshot
    cluster = Galera()
    try:
        cluster.start()
        for way in given.ways:
            result = _try(cluster, way, given.seconds, given.per_node)
            words = ", ".join(f"{name} {count}" for name, count in sorted(result.items()))
            sys.stdout.write(f"{way}: {words}\n")
            sys.stdout.flush()
    finally:
        cluster.close()


def _try(cluster: Galera, way: str, seconds: float, per_node: int) -> Acknowledged:
    url = cluster.fresh()
    ids = _prepare(url)
    database = url.rpartition("/")[2]
    queue: multiprocessing.Queue[Acknowledged] = multiprocessing.Queue()
    nodes = cluster.nodes[:1] * len(cluster.nodes) if way == "alone" else cluster.nodes
    workers = [
        multiprocessing.Process(
            target=_work, args=(queue, node.port, database, way, ids, seconds, number)
        )
        for number, node in enumerate(nodes * per_node)
    ]
    for each in workers:
        each.start()
    result: Acknowledged = sum((queue.get() for _ in workers), Counter())
    for each in workers:
        each.join()
    result.update(_check(cluster.nodes, database, way, ids, result))
    return result


def _prepare(url: str) -> list[ProviderId]:
    backend = catalogue.of_url(url)
    store = Store(backend, backend.engines(url, readers_max=1, busy_timeout_s=5.0))
    schema.upgrade(store, NOW)
    made: list[ProviderId] = []
    with store.write() as tx:
        for number in range(PROVIDERS):
            uuid = f"00000000-0000-4000-8000-{number:012}"
            made.append(providers.create(tx, uuid, uuid, None, now=NOW).id)
            inventories.add(tx, uuid, "VCPU", Inventory(total=TOTAL), NOW)
        tx.exec_driver_sql("CREATE TABLE blind_counter (id INT PRIMARY KEY, number BIGINT)")
    with store.write() as tx:
        tx.execute(counter.insert().values(id=1, number=0))
    store.dispose()
    return made


@contextmanager
def _engine(port: int, database: str, isolation: str) -> Iterator[sa.Engine]:
    at = sa.URL.create("mariadb+pymysql", "root", host="127.0.0.1", port=port, database=database)
    settings = ", ".join(" = ".join(item) for item in SESSION.items())
    made = sa.create_engine(
        at, isolation_level=isolation, connect_args={"init_command": f"SET SESSION {settings}"}
    )
    yield made
    made.dispose()


def _work(
    queue: multiprocessing.Queue[Acknowledged],
    port: int,
    database: str,
    way: str,
    ids: list[ProviderId],
    seconds: float,
    number: int,
) -> None:
    dice = random.Random(number)  # noqa: S311 - to be repeated, not to be secret
    result: Acknowledged = Counter()
    until_s = time.monotonic() + seconds
    isolation = "REPEATABLE READ" if way in BLIND else "READ COMMITTED"
    with _engine(port, database, isolation) as engine:
        # Without the statements that a backend runs before each transaction.
        store = Store(Mariadb(), Engines(reading=engine, writing=engine))
        with store.read() as tx:
            vcpu = names.class_ids(tx)["VCPU"]
        while time.monotonic() < until_s:
            result["tried"] += 1
            wanted = _claim(dice, dice.choice(ids), vcpu)
            try:
                with store.write() as tx:
                    _once(tx, way, wanted)
            except Refusal as refusal:
                number_told = number_of(getattr(refusal.__cause__, "orig", None))
                result[f"ended with {number_told or type(refusal).__name__}"] += 1
            else:
                result["acknowledged"] += 1
    queue.put(result)


def _claim(dice: random.Random, provider: ProviderId, vcpu: ClassId) -> ConsumerClaim:
    uuid = ConsumerUuid(f"{dice.getrandbits(32):08x}-0000-4000-8000-{dice.getrandbits(48):012x}")
    return ConsumerClaim(uuid, "project", "user", {provider: {vcpu: 1}}, None)


def _once(tx: Tx, way: str, wanted: ConsumerClaim) -> None:
    if way in BLIND:
        read = tx.execute(READ).scalar_one()
        tx.execute(counter.update().values(number=read + 1))
        return
    if way == "turns":
        tx.exec_driver_sql(NEXT)
    claims.replace(tx, [wanted], NOW)


def _check(
    nodes: list[Node], database: str, way: str, ids: list[ProviderId], result: Mapping[str, int]
) -> Acknowledged:
    """Compare the final state with the acknowledgements. It must be the same on every node."""
    seen = []
    for node in nodes:
        with _engine(node.port, database, "REPEATABLE READ") as engine, engine.begin() as tx:
            seen.append(_count(tx, way, ids))
    assert all(each == seen[0] for each in seen), "the nodes differ"
    there, generations, over = seen[0]
    return Counter(
        {
            "LOST": result.get("acknowledged", 0) - there,
            "GENERATIONS THAT NOBODY MOVED": generations - there,
            "PROVIDERS OVER CAPACITY": over,
        }
    )


def _count(tx: Tx, way: str, ids: list[ProviderId]) -> tuple[int, int, int]:
    if way in BLIND:
        there = int(tx.execute(READ).scalar_one())
        return there, there, 0
    there = int(tx.execute(sa.select(sa.func.count()).select_from(allocations)).scalar_one())
    views = capacity.views(tx, ids)
    # Each generation began at 1, when the provider's inventory was set.
    moved = sum(view.generation - 1 for view in views.values())
    over = sum(max(view.used.values(), default=0) > TOTAL for view in views.values())
    return there, moved, over


if __name__ == "__main__":
    main()
