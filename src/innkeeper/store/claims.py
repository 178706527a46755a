"""Write claims by compare-and-update. Only this module adds allocations and advances generations.

Source: the design *Resource Providers*, "compare and update". The statement in the design
lacks ``id = ?``. Without this condition, it would update every provider at the given generation.

Always true: a transaction that inserts allocations also advances their providers, from the
generations at which the claimant checked capacity. Two transactions cannot advance a provider from
the same generation: the later transaction updates no row, or its commit fails. Also, no claim
leaves a provider over its capacity, because the sums are checked again after all writes. At that
time, the update has locked the providers' rows, so the sums include all other claims.

A claim may fail even if its generations matched when this transaction read them. Write transactions
normally run one after the other, so no other transaction commits between the read and the update.
Around a fail-over, however, two transactions may run concurrently.

Tests can switch off both guards with the store's constructor (:mod:`.guards`), to prove that the
guards are needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa
import structlog

from innkeeper.domain.errors import ConcurrentUpdate, Overtaken, ProviderChanged, Refusal
from innkeeper.domain.ids import ClassId, ConsumerUuid, Generation, ProviderId
from innkeeper.domain.placement import Claim, ConsumerClaim
from innkeeper.store import by_ids, changes, overfull
from innkeeper.store.by_ids import IDS
from innkeeper.store.overfull import Gains
from innkeeper.store.prepared import Prepared, PreparedForIds
from innkeeper.store.tables.placement import allocations, consumers, resource_providers
from innkeeper.store.transactions import Tx, guards_of

LOG = structlog.get_logger("innkeeper.store")

Moves = Mapping[ProviderId, tuple[Generation, Generation]]
"""The generations of each provider before and after the writes."""

_GENERATIONS = PreparedForIds(
    sa.select(resource_providers.c.id, resource_providers.c.generation).where(
        resource_providers.c.id.in_(IDS)
    )
)
_CONSUMERS = PreparedForIds(
    sa.select(consumers.c.uuid, consumers.c.generation).where(consumers.c.uuid.in_(IDS))
)
# UPDATE resource_providers SET generation = :new, updated_at = :now
#  WHERE id = :provider AND generation = :seen
#
# Not SELECT ... FOR UPDATE: Galera nodes do not share row locks. Two nodes may both pass this
# UPDATE; certification then fails one COMMIT.
_ADVANCE = Prepared(
    resource_providers.update()
    .where(resource_providers.c.id == sa.bindparam("provider"))
    .where(resource_providers.c.generation == sa.bindparam("seen"))
    .values(generation=sa.bindparam("new"), updated_at=sa.bindparam("now"))
)
# As above, without the guard; see store/guards.py.
_ADVANCE_UNGUARDED = Prepared(
    resource_providers.update()
    .where(resource_providers.c.id == sa.bindparam("provider"))
    .values(generation=sa.bindparam("new"), updated_at=sa.bindparam("now"))
)
# The consumer's row is compared and updated in the same way.
_ADVANCE_CONSUMER = Prepared(
    consumers.update()
    .where(consumers.c.uuid == sa.bindparam("consumer"))
    .where(consumers.c.generation == sa.bindparam("seen"))
    .values(
        generation=sa.bindparam("new"),
        project_id=sa.bindparam("project"),
        user_id=sa.bindparam("user"),
        consumer_type=sa.bindparam("type"),
        updated_at=sa.bindparam("now"),
    )
)
_ADD_CONSUMERS = Prepared(consumers.insert())
_ADD_ALLOCATIONS = Prepared(allocations.insert())
_DELETE_CONSUMERS = consumers.delete().where(consumers.c.uuid.in_(IDS))
_DELETE_ALLOCATIONS = allocations.delete().where(allocations.c.consumer_id.in_(IDS))
_HELD = sa.select(
    allocations.c.consumer_id,
    allocations.c.resource_provider_id,
    allocations.c.resource_class_id,
    allocations.c.used,
).where(allocations.c.consumer_id.in_(IDS))


@dataclass(frozen=True, slots=True)
class Freed:
    """An allocation that was released."""

    consumer_uuid: ConsumerUuid
    provider_id: ProviderId
    class_id: ClassId
    used: int


@dataclass(slots=True)
class _Writing:
    """The writes of the accepted claims of one batch."""

    generations: dict[ProviderId, Generation]
    is_guarded: bool
    first_seen: dict[ProviderId, Generation] = field(default_factory=dict)
    consumers: dict[ConsumerUuid, Generation] = field(default_factory=dict)
    touched: set[ConsumerUuid] = field(default_factory=set)
    replaced: list[ConsumerUuid] = field(default_factory=list)
    gone: list[ConsumerUuid] = field(default_factory=list)
    new_rows: list[dict[str, Any]] = field(default_factory=list)
    moved_rows: list[dict[str, Any]] = field(default_factory=list)
    allocation_rows: list[dict[str, Any]] = field(default_factory=list)
    rejected: set[ProviderId] = field(default_factory=set)


def commit_together(
    tx: Tx,
    claims: Sequence[Claim],
    now: datetime,
    *,
    are_read_here: bool = False,
    given_back: Sequence[Freed] = (),
) -> list[Refusal | None]:
    """Write many claims in one transaction. Each claim succeeds or fails independently.

    Returns ``None`` for each written claim, and the reason for each rejected one.
    :class:`ProviderChanged` means: read again and retry. :class:`ConcurrentUpdate` means that a
    consumer is not at the generation in its claim.

    Each accepted claim advances the generations of its providers. If several claims are on one
    provider, the ``seen`` of each claim must contain the generation after the earlier claims. If a
    claim is rejected, all later claims on its providers are rejected too, because the generation in
    their ``seen`` is never written.

    ``are_read_here`` states that this transaction has already read the generations of the providers
    and consumers. ``given_back`` lists the allocations that this transaction released for these
    claims. The claims may take the released amounts again, even if a provider is over its capacity.

    Raises :class:`Overtaken` after a conflict with a concurrent transaction, or if a provider would
    exceed its capacity. At that time, some rows are already written, and could overcommit a
    provider. So the caller must roll back the whole transaction, or the savepoint of its step.
    """
    writing = _begin(tx, claims, are_read_here=are_read_here)
    outcomes: list[Refusal | None] = []
    for claim in claims:
        outcomes.append(_accept(writing, claim, now))
        if outcomes[-1] is not None:
            writing.rejected |= claim.seen.keys()
    _write(tx, writing, given_back, now)
    return outcomes


def _begin(tx: Tx, claims: Sequence[Claim], *, are_read_here: bool) -> _Writing:
    is_guarded = guards_of(tx).generations
    if are_read_here or not is_guarded:
        generations = _seen_generations(claims)
    else:
        generations = _read_generations(tx, {pid for claim in claims for pid in claim.seen})
    consumers = _seen_consumers(claims) if are_read_here else _read_consumers(tx, claims)
    return _Writing(generations, is_guarded, consumers=consumers)


def _read_generations(tx: Tx, ids: Iterable[ProviderId]) -> dict[ProviderId, Generation]:
    return dict(_GENERATIONS.rows(tx, ids))


def _read_consumers(tx: Tx, claims: Sequence[Claim]) -> dict[ConsumerUuid, Generation]:
    known = [each.uuid for claim in claims for each in claim.consumers if not each.is_new_id]
    return dict(_CONSUMERS.rows(tx, known))


def _seen_generations(claims: Sequence[Claim]) -> dict[ProviderId, Generation]:
    """Return the generation of each provider before the first claim on it."""
    found: dict[ProviderId, Generation] = {}
    for claim in claims:
        for provider_id, seen in claim.seen.items():
            found.setdefault(provider_id, seen)
    return found


def _seen_consumers(claims: Sequence[Claim]) -> dict[ConsumerUuid, Generation]:
    return {
        each.uuid: each.seen
        for claim in claims
        for each in claim.consumers
        if each.seen is not None
    }


def _accept(writing: _Writing, claim: Claim, now: datetime) -> Refusal | None:
    for provider_id, seen in claim.seen.items():
        is_rejected = provider_id in writing.rejected
        is_changed = writing.is_guarded and writing.generations.get(provider_id) != seen
        if is_rejected or is_changed:
            return ProviderChanged(provider_id, seen)
    for each in claim.consumers:
        # If a consumer occurs twice in a batch, the second claimant has not seen the first claim.
        if each.uuid in writing.touched or writing.consumers.get(each.uuid) != each.seen:
            return ConcurrentUpdate(
                f"Consumer {each.uuid} is not at the expected generation {each.seen}."
            )
        assert each.amounts.keys() <= claim.seen.keys(), "a provider is missing in ``seen``"
    for provider_id, seen in claim.seen.items():
        writing.first_seen.setdefault(provider_id, seen)
        writing.generations[provider_id] = Generation(seen + 1)
    for each in claim.consumers:
        _add_consumer(writing, each, now)
    return None


def _add_consumer(writing: _Writing, each: ConsumerClaim, now: datetime) -> None:
    writing.touched.add(each.uuid)
    if each.seen is not None:
        writing.replaced.append(each.uuid)
    if not each.amounts:
        if each.seen is not None:
            writing.gone.append(each.uuid)
        return
    generation = Generation(1 if each.seen is None else each.seen + 1)
    if each.seen is None:
        writing.new_rows.append(
            {
                "uuid": each.uuid,
                "project_id": each.project_id,
                "user_id": each.user_id,
                "generation": generation,
                "consumer_type": each.consumer_type,
                "created_at": now,
                "updated_at": now,
            }
        )
    else:
        writing.moved_rows.append(
            {
                "consumer": each.uuid,
                "seen": each.seen,
                "new": generation,
                "project": each.project_id,
                "user": each.user_id,
                "type": each.consumer_type,
                "now": now,
            }
        )
    for provider_id, amounts in each.amounts.items():
        for class_id, used in amounts.items():
            assert used >= 1, "an allocation is at least one unit"
            writing.allocation_rows.append(
                {
                    "resource_provider_id": provider_id,
                    "consumer_id": each.uuid,
                    "resource_class_id": class_id,
                    "used": used,
                    "created_at": now,
                }
            )


def _write(tx: Tx, writing: _Writing, given_back: Sequence[Freed], now: datetime) -> None:
    # Advance the generations first, so that a conflict is found before anything else is written.
    advanced = {pid: (seen, writing.generations[pid]) for pid, seen in writing.first_seen.items()}
    _move(tx, advanced, now)
    gains = overfull.net_gains(
        (
            (row["resource_provider_id"], row["resource_class_id"], row["used"])
            for row in writing.allocation_rows
        ),
        _amounts(_held(tx, writing.replaced)) if writing.replaced else (),
    )
    # ``given_back`` is already in the change feed.
    _add_changes(tx, advanced, gains, now)
    if writing.replaced:
        by_ids.run(tx, _DELETE_ALLOCATIONS, writing.replaced)
        by_ids.run(tx, _DELETE_CONSUMERS, writing.gone)
    if writing.moved_rows:
        _update_all(tx, _ADVANCE_CONSUMER, writing.moved_rows)
    if writing.new_rows:
        _ADD_CONSUMERS.run(tx, writing.new_rows)
    if writing.allocation_rows:
        _ADD_ALLOCATIONS.run(tx, writing.allocation_rows)
        if guards_of(tx).capacity:
            checked = overfull.subtract(gains, _amounts(given_back)) if given_back else gains
            _check_capacity(tx, checked)


def _amounts(freed: Iterable[Freed]) -> Iterator[tuple[ProviderId, ClassId, int]]:
    return ((each.provider_id, each.class_id, each.used) for each in freed)


def _add_changes(tx: Tx, moves: Moves, gains: Gains, now: datetime) -> None:
    taken: dict[ProviderId, dict[ClassId, int]] = {pid: {} for pid in sorted(moves)}
    unclaimed = {provider_id for provider_id, _ in gains} - taken.keys()
    for (provider_id, class_id), amount in gains.items():
        if amount and provider_id not in unclaimed:
            taken[provider_id][class_id] = amount
    # A provider that only loses allocations is not in ``seen``, so its generation does not change.
    if unclaimed:
        changes.add_always_read(tx, sorted(unclaimed), now)
    changes.add_claimed(
        tx, [changes.Claimed(pid, *moves[pid], amounts) for pid, amounts in taken.items()], now
    )


def _check_capacity(tx: Tx, gains: Gains) -> None:
    found = overfull.exceeded(tx, gains)
    if found:
        # Not expected: the check of the generations rejects such claims before any write.
        LOG.error("claims_beyond_capacity", providers_and_classes=found)
        raise Overtaken("A resource provider has less capacity left than expected.")


def advance(
    tx: Tx, seen: Mapping[ProviderId, Generation], now: datetime
) -> dict[ProviderId, Generation]:
    """Advance the generation of each provider in ``seen``; return the new generations.

    This is for changes of inventories, traits and aggregates, which write no claim. Raises
    :class:`ProviderChanged` for the first provider at another generation. The caller must then roll
    back.
    """
    current = _read_generations(tx, seen)
    for provider_id, generation in seen.items():
        if current.get(provider_id) != generation:
            raise ProviderChanged(provider_id, generation)
    moved = {pid: (old, Generation(old + 1)) for pid, old in seen.items()}
    _move(tx, moved, now)
    changes.add(tx, ((pid, moved[pid][1]) for pid in sorted(moved)), now)
    return {pid: new for pid, (_, new) in moved.items()}


def _move(tx: Tx, moves: Moves, now: datetime) -> None:
    # In id order, so that transactions on the same providers queue instead of deadlocking.
    if not moves:
        return
    ids = sorted(moves)
    if guards_of(tx).generations:
        rows = [
            {"provider": pid, "seen": moves[pid][0], "new": moves[pid][1], "now": now}
            for pid in ids
        ]
        _update_all(tx, _ADVANCE, rows)
    else:
        _ADVANCE_UNGUARDED.run(
            tx, [{"provider": pid, "new": moves[pid][1], "now": now} for pid in ids]
        )


def _update_all(tx: Tx, statement: Prepared, rows: list[dict[str, Any]]) -> None:
    if tx.dialect.supports_sane_multi_rowcount:
        changed = statement.run(tx, rows)
    else:
        changed = sum(statement.run(tx, [row]) for row in rows)
    if changed != len(rows):
        # The driver reports only the number of changed rows, not which rows did not match.
        raise Overtaken("Another transaction changed the same rows concurrently.")


def release(tx: Tx, uuids: Sequence[ConsumerUuid], now: datetime) -> list[Freed]:
    """Delete these consumers with their allocations, and return the allocations.

    Unknown consumers are ignored, so a release is idempotent. As with Placement's ``DELETE
    /allocations``, generations do not advance. This is safe: a claim that was decided before the
    release can only underestimate the free capacity.
    """
    freed = _held(tx, uuids)
    by_ids.run(tx, _DELETE_ALLOCATIONS, uuids)
    by_ids.run(tx, _DELETE_CONSUMERS, uuids)
    changes.add_always_read(tx, sorted({each.provider_id for each in freed}), now)
    return freed


def _held(tx: Tx, uuids: Sequence[ConsumerUuid]) -> list[Freed]:
    return [
        Freed(ConsumerUuid(uuid), ProviderId(provider_id), ClassId(class_id), used)
        for uuid, provider_id, class_id, used in by_ids.rows(tx, _HELD, uuids)
    ]
