"""A reshape is applied completely or not at all, and no allocation changes by accident.

The test compares the whole store with a model in plain dictionaries. A reshape first adds the new
inventories, then replaces allocations, and then removes the old inventories.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.errors import CapacityExceeded, ConcurrentUpdate, InUse, Invalid, Refusal
from innkeeper.store import schema
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.placement import allocations, audit, inventories, providers, reshape
from innkeeper.systems.placement.allocations import AllocationUpdate
from innkeeper.systems.placement.reshape import ProviderShape
from tests.support.databases import open_store
from tests.support.servers.leaving import LEAVING

NOW = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
CLASSES = ("VCPU", "VGPU")
PROVIDERS = tuple(f"00000000-0000-0000-0000-00000000000{n}" for n in range(3))
"""A host and its two cards."""
STRANGER = "00000000-0000-0000-0000-00000000000f"
CONSUMERS = tuple(f"10000000-0000-0000-0000-00000000000{n}" for n in range(3))
TOTAL = 6

Holding = dict[tuple[str, str], int]
"""Amounts by provider and class."""


class Died(Exception):
    """The process ends in the middle of a transaction."""


class Reshape(NamedTuple):
    """One request: the new inventories, the new allocations, and what is wrong with it."""

    shapes: dict[str, dict[str, int]]
    updates: dict[str, Holding]
    amiss: str


@dataclass
class World:
    """The expected content of the store."""

    has: dict[tuple[str, str], int] = field(default_factory=dict)
    held: dict[str, Holding] = field(default_factory=dict)
    moved: dict[str, int] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)

    def used(self, key: tuple[str, str]) -> int:
        """The usage of a class of a provider."""
        return sum(holding.get(key, 0) for holding in self.held.values())

    def after(self, asked: Reshape) -> World | type[Refusal]:
        """The world after a reshape, or the type of its refusal."""
        if asked.amiss in ("stale provider", "stale consumer"):
            return ConcurrentUpdate
        if asked.amiss == "stranger":
            return Invalid
        wanted = {
            (each, name): total
            for each, shape in asked.shapes.items()
            for name, total in shape.items()
        }
        both = self.has | wanted
        held = {**self.held, **asked.updates}
        held = {each: holding for each, holding in held.items() if holding}
        for key in {key for update in asked.updates.values() for key in update}:
            added = sum(update.get(key, 0) for update in asked.updates.values())
            freed = sum(self.held.get(each, {}).get(key, 0) for each in asked.updates)
            after = self.used(key) - freed + added
            if key not in both or (after > both[key] and added > freed):
                return CapacityExceeded
        has = {key: total for key, total in self.has.items() if key[0] not in asked.shapes}
        has |= wanted
        taken = {key for holding in held.values() for key in holding}
        if any(key not in has for key in taken):
            return InUse
        touched = {
            each
            for who in asked.updates
            for each, _ in [*self.held.get(who, ()), *held.get(who, ())]
        }
        moved = dict(self.moved)
        for each in PROVIDERS:
            if each in asked.shapes:
                moved[each] += 2 if asked.shapes[each] else 1
            moved[each] += each in touched
        written = {each: self.written.get(each, 0) + (each in asked.updates) for each in held}
        return World(has, held, moved, written)


def seen_in(tx: Tx) -> World:
    """The content of the store."""
    world = World()
    for each in PROVIDERS:
        found = inventories.listing(tx, each)
        world.moved[each] = found.generation
        for line in found.lines:
            world.has[each, line.class_name] = line.inventory.total
    for each in CONSUMERS:
        held = allocations.of_consumer(tx, each)
        if held.consumer is not None:
            world.written[each] = held.consumer.generation
        holding = {(row.provider_uuid, row.class_name): row.used for row in held.allocations}
        assert len(holding) == len(held.allocations), "an allocation is there twice"
        if holding:
            world.held[each] = {(str(uuid), name): used for (uuid, name), used in holding.items()}
    return world


def carry_out(tx: Tx, world: World, asked: Reshape) -> None:
    """Carry out a reshape through the systems."""
    shapes = {
        each: ProviderShape(
            world.moved[each] - (asked.amiss == "stale provider"),
            {name: Inventory(total) for name, total in shape.items()},
        )
        for each, shape in asked.shapes.items()
    }
    if asked.amiss == "stranger":
        shapes[STRANGER] = ProviderShape(0, {})
    updates = [
        AllocationUpdate(
            who,
            _by_provider(holding),
            seen=_generation(world, who, asked.amiss == "stale consumer"),
            project_id="project",
            user_id="user",
        )
        for who, holding in asked.updates.items()
    ]
    reshape.replace(tx, shapes, updates, NOW)
    if asked.amiss == "death":
        raise Died


def _generation(world: World, who: str, is_stale: bool) -> int | None:
    actual = world.written.get(who)
    if not is_stale:
        return actual
    return 1 if actual is None else actual + 1


def _by_provider(holding: Holding) -> Mapping[str, Mapping[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (each, name), amount in holding.items():
        found.setdefault(each, {})[name] = amount
    return found


@cache
def template() -> Path:
    """A database with the schema and the providers, to be copied, because migrations are slow."""
    folder = LEAVING.folder("innkeeper-template-")
    store = open_store(folder)
    schema.upgrade(store, NOW)
    with store.write() as tx:
        for each in PROVIDERS:
            parent = None if each == PROVIDERS[0] else PROVIDERS[0]
            providers.create(tx, each, each, parent, now=NOW)
            inventories.replace(tx, each, 0, dict.fromkeys(CLASSES, Inventory(TOTAL)), NOW)
    store.dispose()
    return folder


providers_drawn = st.sampled_from(PROVIDERS)
shapes_drawn = st.dictionaries(
    providers_drawn, st.dictionaries(st.sampled_from(CLASSES), st.integers(1, TOTAL)), min_size=1
)
holdings_drawn = st.dictionaries(
    st.tuples(providers_drawn, st.sampled_from(CLASSES)), st.integers(1, TOTAL // 2), max_size=3
)
# Failures are rare: a story in which nothing succeeds shows no later errors.
amiss_drawn = st.integers(0, 19).map(
    lambda number: {0: "stale provider", 1: "stale consumer", 2: "stranger", 3: "death"}.get(
        number, ""
    )
)
reshapes_drawn = st.builds(
    Reshape,
    shapes_drawn,
    st.dictionaries(st.sampled_from(CONSUMERS), holdings_drawn, max_size=3),
    amiss_drawn,
)


@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.lists(reshapes_drawn, min_size=1, max_size=10))
def test_all_or_nothing(asked_one_by_one: list[Reshape]) -> None:
    folder = Path(tempfile.mkdtemp(prefix="innkeeper-reshape-"))
    shutil.copytree(template(), folder, dirs_exist_ok=True)
    store = open_store(folder)
    try:
        with store.read() as tx:
            world = seen_in(tx)
        for asked in asked_one_by_one:
            world = step(store, world, asked)
    finally:
        store.dispose()
        shutil.rmtree(folder)


def step(store: Store, world: World, asked: Reshape) -> World:
    """Ask for one reshape, judge the result, and return the world after it."""
    if asked.amiss == "stale consumer" and not asked.updates:
        asked = asked._replace(amiss="")
    expected = world.after(asked)
    refusal: Exception | None = None
    try:
        with store.write() as tx:
            carry_out(tx, world, asked)
    except (Refusal, Died) as error:
        refusal = error
    with store.read() as tx:
        found = seen_in(tx)
        broken = [each for each in audit.findings(tx) if each.invariant is not audit.OVER_CAPACITY]
    assert broken == []
    event(type(refusal).__name__)
    if refusal is not None:
        if not isinstance(refusal, Died):
            assert expected is type(refusal), (expected, refusal)
        assert found == world, "a reshape that was refused has changed something"
        return world
    assert found == expected, "a reshape did something else than it says"
    for key in found.has:
        # Only a provider that shrank below its usage is over capacity, and its usage has not grown.
        assert found.used(key) <= max(found.has[key], world.used(key))
        if found.used(key) > found.has[key]:
            assert key[0] in asked.shapes or world.used(key) > world.has[key]
    return found
