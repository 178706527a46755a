"""Repairs for the findings of this room's audit.

Always true: each function gets the keys of findings, checks them again in its own transaction,
repairs what is still broken, and reports what it did. It leaves doubtful cases alone, and deletes
no allocations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from innkeeper.domain.errors import Refusal
from innkeeper.domain.ids import ClassId, ConsumerUuid, Generation, ProviderId
from innkeeper.domain.placement import Claim
from innkeeper.store import changes
from innkeeper.store.queries.placement import allocations, audit, providers
from innkeeper.store.transactions import Tx, step
from innkeeper.systems.placement import claims
from innkeeper.systems.placement.allocations import NOBODY
from innkeeper.systems.placement.audit import IDLE_CONSUMER, UNTOLD, WRONG_ROOT
from innkeeper.systems.placement.transfers import TransferSide


def adopt(
    tx: Tx, keys: Sequence[str], owners: Mapping[str, TransferSide], now: datetime
) -> list[str]:
    """Create the missing consumers of allocations, from ``owners`` or else without a project."""
    done = []
    for uuid, count in audit.without_consumer(tx, keys):
        side = owners.get(uuid, TransferSide(ConsumerUuid(uuid), NOBODY, NOBODY, "UNKNOWN"))
        try:
            with step(tx):
                _claim_again(tx, side, now)
        except Refusal:
            # Another writer was faster, or the inventory has shrunk below its usage.
            continue
        done.append(f"{uuid} has its {count} allocations, of project {side.project_id}")
    return done


def _claim_again(tx: Tx, side: TransferSide, now: datetime) -> None:
    amounts: dict[ProviderId, dict[ClassId, int]] = {}
    seen: dict[ProviderId, Generation] = {}
    for row in allocations.of_consumers(tx, [side.uuid]):
        amounts.setdefault(row.provider_id, {})[row.class_id] = row.used
        seen[row.provider_id] = row.provider_generation
    freed = claims.release(tx, [side.uuid], now)
    claim = Claim((side.claim(amounts, None),), seen)
    (refusal,) = claims.commit_together(tx, [claim], now, given_back=freed)
    if refusal is not None:
        raise refusal


def remove_idle(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Remove consumers that have no allocations."""
    idle = [ConsumerUuid(uuid) for (uuid,) in audit.idle_consumers(tx, keys)]
    claims.release(tx, idle, now)
    return [f"{uuid} is removed" for uuid in idle]


def write_roots(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Write the root that follows from a provider's parents, unless they form a cycle."""
    done = []
    wrong = [uuid for (uuid,) in audit.wrong_roots(tx, keys)]
    for uuid, provider_id in sorted(providers.ids_by_uuid(tx, wrong).items()):
        root_id = _root_of(tx, provider_id)
        if root_id is None:
            continue
        providers.write_root(tx, provider_id, None if root_id == provider_id else root_id, now)
        changes.add_always_read(tx, sorted({provider_id, root_id}), now)
        done.append(f"provider {uuid} has the root of its parents")
    return done


def _root_of(tx: Tx, provider_id: ProviderId) -> ProviderId | None:
    """Return the topmost ancestor, or ``None`` if the parents form a cycle."""
    passed: set[ProviderId] = set()
    here = provider_id
    while here not in passed:
        passed.add(here)
        above = providers.parents_of(tx, [here])[here]
        if above is None:
            return here
        here = above
    return None


def tell_again(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Add the present generations of providers to the change feed."""
    found = audit.missing_changes(tx, keys)
    # Both are needed: the generation was missing, and even a process that knows it must read again.
    changes.add(tx, [(ProviderId(row[1]), row[2]) for row in found], now)
    changes.add_always_read(tx, [ProviderId(row[1]) for row in found], now)
    return [f"provider {row[0]} is in the feed at generation {row[2]}" for row in found]


REPAIRS = {IDLE_CONSUMER.kind: remove_idle, WRONG_ROOT.kind: write_roots, UNTOLD.kind: tell_again}
"""All repairs except :func:`adopt`, whose caller has to know the consumers' owners."""
