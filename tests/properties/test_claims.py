"""Whatever the order of events, nothing is sold twice, and nothing promised is lost."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.errors import (
    CapacityExceeded,
    ConcurrentUpdate,
    InUse,
    ProviderChanged,
    Refusal,
)
from innkeeper.domain.ids import ClassId, ConsumerUuid, Generation, ProviderId
from innkeeper.domain.placement import Claim, ConsumerClaim, ProviderView
from innkeeper.store import schema
from innkeeper.store.queries.placement import allocations, capacity, names
from innkeeper.store.transactions import Tx
from innkeeper.systems.placement import claims, inventories, providers
from tests.support.databases import open_store
from tests.support.servers.leaving import LEAVING

NOW = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
CLASSES = ("VCPU", "MEMORY_MB")
PROVIDERS = tuple(f"00000000-0000-0000-0000-00000000000{n}" for n in range(3))
CONSUMERS = tuple(ConsumerUuid(f"10000000-0000-0000-0000-00000000000{n}") for n in range(3))
TOTAL = 6
"""Units of each class at first: few, so that claims soon compete."""

Key = tuple[int, str]
"""A provider's number in ``PROVIDERS``, and a class."""
Holding = dict[Key, int]

numbers = st.integers(0, len(PROVIDERS) - 1)
keys = st.tuples(numbers, st.sampled_from(CLASSES))
holdings = st.dictionaries(keys, st.integers(1, TOTAL + 1), max_size=3)
consumers = st.sampled_from(CONSUMERS)
# Failures are rare: a story in which nothing succeeds shows no later errors.
rarely = st.integers(0, 5).map(lambda number: number == 5)


class Died(Exception):
    """The process ends in the middle of a transaction."""


@cache
def template() -> Path:
    """A database with the schema and the providers, to be copied, because migrations are slow."""
    folder = LEAVING.folder("innkeeper-template-")
    store = open_store(folder)
    schema.upgrade(store, NOW)
    with store.write() as tx:
        for uuid in PROVIDERS:
            providers.create(tx, uuid, uuid, None, now=NOW)
            has = {name: Inventory(total=TOTAL) for name in CLASSES}
            inventories.replace(tx, uuid, 0, has, NOW)
    store.dispose()
    return folder


class Claiming(RuleBasedStateMachine):
    """The store beside a plain model of what was acknowledged."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="innkeeper-claims-"))
        shutil.copytree(template(), self.folder, dirs_exist_ok=True)
        self.store = open_store(self.folder)
        with self.store.read() as tx:
            self.class_ids = {name: names.class_ids(tx)[name] for name in CLASSES}
            self.ids = [providers.get(tx, uuid).id for uuid in PROVIDERS]
        self.held: dict[ConsumerUuid, Holding] = {}
        self.consumer_generations: dict[ConsumerUuid, int] = {}
        self.totals = {(n, name): TOTAL for n in range(len(PROVIDERS)) for name in CLASSES}
        # The most that may be held: the capacity, or the usage at the time when it shrank below
        # that.
        self.ceilings = dict(self.totals)
        self.generations = [0] * len(PROVIDERS)
        self.looked: dict[ProviderId, ProviderView] = {}
        self.new_consumers = 0

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.dispose()
            shutil.rmtree(self.folder)

    def used(self, key: Key) -> int:
        """The usage in the model."""
        return sum(holding.get(key, 0) for holding in self.held.values())

    def write(self, work: Callable[[Tx], None], dies: bool) -> Refusal | None:
        """Write in a transaction that may die before its end; return the refusal."""
        try:
            with self.store.write() as tx:
                work(tx)
                if dies:
                    raise Died
        except Refusal as refusal:
            return refusal
        return None

    def amounts(self, holding: Holding) -> dict[ProviderId, dict[ClassId, int]]:
        """A holding with the store's ids."""
        found: dict[ProviderId, dict[ClassId, int]] = {}
        for (number, name), amount in holding.items():
            found.setdefault(self.ids[number], {})[self.class_ids[name]] = amount
        return found

    def acknowledged(self, consumer: ConsumerUuid, holding: Holding) -> None:
        """Note what a consumer was promised."""
        if holding:
            self.held[consumer] = dict(holding)
            generation = self.consumer_generations.get(consumer, 0)
            self.consumer_generations[consumer] = generation + 1
        else:
            self.held.pop(consumer, None)
            self.consumer_generations.pop(consumer, None)

    def fits(self, wanted: Mapping[ConsumerUuid, Holding]) -> bool:
        """Whether the rules allow these holdings."""
        touched = {key for holding in wanted.values() for key in holding}
        for key in touched:
            added = sum(holding.get(key, 0) for holding in wanted.values())
            freed = sum(self.held.get(each, {}).get(key, 0) for each in wanted)
            if self.used(key) - freed + added > self.totals[key] and added > freed:
                return False
        return True

    @rule(
        wanted=st.dictionaries(consumers, holdings, min_size=1, max_size=3),
        is_stale=rarely,
        dies=rarely,
    )
    def replace(self, wanted: dict[ConsumerUuid, Holding], is_stale: bool, dies: bool) -> None:
        """Replace the holdings of several consumers at once."""
        claimed = []
        for consumer, holding in wanted.items():
            generation = self.consumer_generations.get(consumer)
            if is_stale:
                generation = 1 if generation is None else generation + 1
            seen = None if generation is None else Generation(generation)
            claimed.append(ConsumerClaim(consumer, "project", "user", self.amounts(holding), seen))
        try:
            refusal = self.write(lambda tx: claims.replace(tx, claimed, NOW), dies)
        except Died:
            return
        if refusal is None:
            assert not is_stale
            assert self.fits(wanted)
            for consumer, holding in wanted.items():
                self.acknowledged(consumer, holding)
        elif isinstance(refusal, CapacityExceeded):
            assert not self.fits(wanted)
        else:
            assert isinstance(refusal, ConcurrentUpdate)
            assert is_stale

    @rule()
    def look(self) -> None:
        """A client reads all providers, for a later decision."""
        with self.store.read() as tx:
            self.looked = capacity.views(tx, self.ids)

    @rule(
        wanted=st.lists(holdings.filter(bool), min_size=1, max_size=4),
        looks_first=st.booleans(),
        dies=rarely,
    )
    def claim_as_looked_at(self, wanted: list[Holding], looks_first: bool, dies: bool) -> None:
        """Commit claims together that fit the providers as they were read, however long ago."""
        if looks_first or not self.looked:
            self.look()
        batch = []
        for holding in wanted:
            self.new_consumers += 1
            uuid = ConsumerUuid(f"20000000-0000-0000-0000-{self.new_consumers:012}")
            amounts = self.amounts(holding)
            one = ConsumerClaim(uuid, "project", "user", amounts, None, is_new_id=True)
            if claims.find_misfit(self.looked, [one], {}) is None:
                seen = {pid: self.looked[pid].generation for pid in amounts}
                batch.append((uuid, holding, Claim((one,), seen)))
        outcomes: list[Refusal | None] = []

        def work(tx: Tx) -> None:
            together = [claim for _, _, claim in batch]
            outcomes.extend(claims.commit_together(tx, together, NOW))

        try:
            self.write(work, dies)
        except Died:
            return
        for (uuid, holding, _), outcome in zip(batch, outcomes, strict=True):
            if outcome is None:
                self.acknowledged(uuid, holding)
            else:
                assert isinstance(outcome, ProviderChanged)

    @rule(data=st.data(), dies=rarely)
    def release(self, data: st.DataObject, dies: bool) -> None:
        """Release everything that some consumers hold."""
        anybody = st.sampled_from(sorted({*CONSUMERS, *self.held}))
        who = data.draw(st.sets(anybody, min_size=1, max_size=3))
        freed: list[Any] = []
        try:
            self.write(lambda tx: freed.extend(claims.release(tx, sorted(who), NOW)), dies)
        except Died:
            return
        assert sum(each.used for each in freed) == sum(
            sum(self.held.get(each, {}).values()) for each in who
        )
        for consumer in who:
            self.acknowledged(consumer, {})

    @rule(
        number=numbers,
        totals=st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 2 * TOTAL)),
        is_stale=rarely,
        dies=rarely,
    )
    def change_inventories(
        self, number: int, totals: dict[str, int], is_stale: bool, dies: bool
    ) -> None:
        """A provider's inventories grow, shrink, or go."""
        uuid = PROVIDERS[number]
        with self.store.read() as tx:
            seen = providers.get(tx, uuid).generation - is_stale
        has = {name: Inventory(total=total) for name, total in totals.items()}
        try:
            refusal = self.write(
                lambda tx: _ignore(inventories.replace(tx, uuid, seen, has, NOW)), dies
            )
        except Died:
            return
        if refusal is None:
            assert not is_stale
            for name in CLASSES:
                key = (number, name)
                self.totals[key] = totals.get(name, 0)
                self.ceilings[key] = max(self.totals[key], self.used(key))
        elif isinstance(refusal, InUse):
            assert any(self.used((number, name)) for name in CLASSES if name not in totals)
        else:
            assert is_stale

    @rule()
    def reopen(self) -> None:
        """The process ends, and another one opens the same database."""
        self.store.dispose()
        self.store = open_store(self.folder)

    @invariant()
    def holds_what_was_acknowledged(self) -> None:
        """The store has the model's allocations and consumers, no more and no less."""
        if not hasattr(self, "store"):
            return
        with self.store.read() as tx:
            rows = [row for pid in self.ids for row in allocations.of_provider(tx, pid)]
            everybody = [*CONSUMERS, *self.held]
            present = allocations.consumers_by_uuid(tx, set(everybody))
            views = capacity.views(tx, self.ids)
        stored: dict[ConsumerUuid, Holding] = {}
        for row in rows:
            key = (self.ids.index(row.provider_id), row.class_name)
            holding = stored.setdefault(row.consumer_uuid, {})
            assert key not in holding
            holding[key] = row.used
        assert stored == self.held
        assert {
            uuid: consumer.generation for uuid, consumer in present.items()
        } == self.consumer_generations
        self._never_over(views)

    def _never_over(self, views: Mapping[ProviderId, ProviderView]) -> None:
        for number, name, held in self._sums(views):
            key = (number, name)
            assert held <= self.ceilings[key], "more is held than there is"
            self.ceilings[key] = max(self.totals[key], held)
        for number, provider_id in enumerate(self.ids):
            generation = views[provider_id].generation
            assert generation >= self.generations[number], "a generation went back"
            self.generations[number] = generation

    def _sums(self, views: Mapping[ProviderId, ProviderView]) -> Iterator[tuple[int, str, int]]:
        for number, provider_id in enumerate(self.ids):
            for name, class_id in self.class_ids.items():
                yield number, name, views[provider_id].used.get(class_id, 0)


def _ignore(_: object) -> None:
    """Ignore a result."""


# After a failure, Hypothesis takes up to five minutes to shrink the story.
TestClaiming = pytest.mark.timeout(600)(Claiming.TestCase)
TestClaiming.settings = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
