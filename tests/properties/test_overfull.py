"""The check after a claim refuses the same claims as the rule before it, in any state."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.errors import Overtaken
from innkeeper.domain.ids import ClassId, ConsumerUuid, Generation, ProviderId
from innkeeper.domain.placement import Amounts, Claim, ConsumerClaim
from innkeeper.store import claims as store_claims
from innkeeper.store import schema
from innkeeper.store.guards import NO_GUARDS, Guards
from innkeeper.store.queries.placement import capacity, names
from innkeeper.store.tables.placement import inventories as inventory_rows
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.placement import claims, inventories, providers
from tests.support.databases import open_store

NOW = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
CLASSES = ("VCPU", "MEMORY_MB")
PROVIDERS = tuple(f"00000000-0000-0000-0000-00000000000{n}" for n in range(2))
CONSUMERS = tuple(ConsumerUuid(f"10000000-0000-0000-0000-00000000000{n}") for n in range(4))

Key = tuple[int, str]
keys = st.tuples(st.integers(0, len(PROVIDERS) - 1), st.sampled_from(CLASSES))
holdings = st.dictionaries(keys, st.integers(1, 4), max_size=3)
updates = st.dictionaries(st.sampled_from(CONSUMERS), holdings, min_size=1)
figures = st.builds(
    Inventory,
    total=st.integers(1, 8),
    reserved=st.integers(0, 2),
    allocation_ratio=st.sampled_from((0.5, 1.0, 1.3, 4.0)),
)
stocks = st.fixed_dictionaries({(n, name): figures for n in (0, 1) for name in CLASSES})


class World(NamedTuple):
    """A store and the ids in it."""

    store: Store
    providers: list[ProviderId]
    classes: dict[str, ClassId]

    def amounts(self, holding: Mapping[Key, int]) -> Amounts:
        """A holding with the store's ids."""
        found: dict[ProviderId, dict[ClassId, int]] = {}
        for (number, name), amount in holding.items():
            found.setdefault(self.providers[number], {})[self.classes[name]] = amount
        return found

    def claim(
        self, wanted: Mapping[ConsumerUuid, Mapping[Key, int]], seen: Generation | None
    ) -> list[ConsumerClaim]:
        """The claims of what consumers want to hold from now on."""
        return [
            ConsumerClaim(uuid, "p", "u", self.amounts(holding), seen)
            for uuid, holding in wanted.items()
        ]


def made(folder: Path) -> World:
    """A world whose providers have all classes."""
    store = open_store(folder)
    schema.upgrade(store, NOW)
    with store.write() as tx:
        for uuid in PROVIDERS:
            providers.create(tx, uuid, uuid, None, now=NOW)
            inventories.replace(tx, uuid, 0, {name: Inventory(1) for name in CLASSES}, NOW)
    with store.read() as tx:
        ids = [providers.get(tx, uuid).id for uuid in PROVIDERS]
        return World(store, ids, {name: names.class_ids(tx)[name] for name in CLASSES})


class Undone(Exception):
    """Ends an example, and rolls its changes back."""


def stock(tx: Tx, world: World, stocked: Mapping[Key, Inventory]) -> None:
    """Write the providers' inventories, whatever the usage."""
    for (number, name), inventory in stocked.items():
        tx.execute(
            inventory_rows.update()
            .where(inventory_rows.c.resource_provider_id == world.providers[number])
            .where(inventory_rows.c.resource_class_id == world.classes[name])
            .values(
                total=inventory.total,
                reserved=inventory.reserved,
                allocation_ratio=inventory.allocation_ratio,
            )
        )


def hold(tx: Tx, world: World, wanted: list[ConsumerClaim]) -> bool:
    """Write claims at the present generations; return whether they succeeded."""
    views = capacity.views(tx, world.providers)
    seen = {pid: view.generation for pid, view in views.items()}
    try:
        with capture_logs():
            outcomes = store_claims.commit_together(tx, [Claim(tuple(wanted), seen)], NOW)
    except Overtaken:
        return False
    assert outcomes == [None]
    return True


def test_the_count_is_the_rule(tmp_path: Path) -> None:
    world = made(tmp_path)
    careless = Store(world.store.backend, world.store.engines, NO_GUARDS)
    counting = Store(world.store.backend, world.store.engines, Guards(generations=False))

    @settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(before=updates, wanted=updates, stocked=stocks)
    def compare(
        before: dict[ConsumerUuid, dict[Key, int]],
        wanted: dict[ConsumerUuid, dict[Key, int]],
        stocked: dict[Key, Inventory],
    ) -> None:
        with careless.write() as tx:
            held = {uuid: holding for uuid, holding in before.items() if holding}
            hold(tx, world, world.claim(held, None))
            stock(tx, world, stocked)
        try:
            with counting.write() as tx:
                groups = [
                    *world.claim({u: w for u, w in wanted.items() if u not in held}, None),
                    *world.claim({u: w for u, w in wanted.items() if u in held}, Generation(1)),
                ]
                views = capacity.views(tx, world.providers)
                freed: dict[tuple[ProviderId, ClassId], int] = {}
                for uuid in wanted.keys() & held.keys():
                    for (number, name), used in held[uuid].items():
                        key = (world.providers[number], world.classes[name])
                        freed[key] = freed.get(key, 0) + used
                fits = claims.find_misfit(views, groups, freed) is None
                assert hold(tx, world, groups) == fits
                raise Undone
        except Undone:
            pass
        with careless.write() as tx:
            store_claims.release(tx, list(CONSUMERS), NOW)

    compare()
    world.store.dispose()
