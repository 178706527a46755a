"""Repair the findings of the audit of providers and allocations.

Always true: each function gets the keys of findings, and checks the findings again in its own
transaction. The function repairs the findings that still exist, and returns one line of text per
repair. No function deletes allocations.
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
    """Create the missing consumers of allocations.

    ``owners`` has the project, user and type of consumers, by uuid. All other consumers get no
    project.
    """
    done = []
    for uuid, count in audit.without_consumer(tx, keys):
        side = owners.get(uuid, TransferSide(ConsumerUuid(uuid), NOBODY, NOBODY, "UNKNOWN"))
        try:
            with step(tx):
                _claim_again(tx, side, now)
        except Refusal:
            # Another writer was faster, or the inventory has shrunk below its usage.
            continue
        done.append(
            f"consumer {uuid} of project {side.project_id} is created for its {count} allocations"
        )
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
    return [f"consumer {uuid} is removed" for uuid in idle]


def write_roots(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Set the root of each provider to the provider's topmost ancestor.

    Providers whose parents form a cycle are left out.
    """
    done = []
    wrong = [uuid for (uuid,) in audit.wrong_roots(tx, keys)]
    for uuid, provider_id in sorted(providers.ids_by_uuid(tx, wrong).items()):
        root_id = _root_of(tx, provider_id)
        if root_id is None:
            continue
        providers.write_root(tx, provider_id, None if root_id == provider_id else root_id, now)
        changes.add_always_read(tx, sorted({provider_id, root_id}), now)
        done.append(f"the root of provider {uuid} is its topmost ancestor")
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
    """Tell all processes again, through the change feed, which generations the providers have."""
    found = audit.missing_changes(tx, keys)
    # The first call adds the missing generation. The second call makes every process read the
    # provider again, even a process that already has the generation.
    changes.add(tx, [(ProviderId(row[1]), row[2]) for row in found], now)
    changes.add_always_read(tx, [ProviderId(row[1]) for row in found], now)
    return [f"provider {row[0]} is in the feed at generation {row[2]}" for row in found]


REPAIRS = {IDLE_CONSUMER.kind: remove_idle, WRONG_ROOT.kind: write_roots, UNTOLD.kind: tell_again}
"""The repairs by kind of finding. :func:`adopt` is not here, because it takes one more argument."""
