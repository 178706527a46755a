"""Repairs of what an audit of this room has found.

Always true: each function is given what findings are about, looks again in its own transaction,
and repairs what is still broken; it tells what it did, and leaves alone what is in doubt. No
repair takes away what anybody holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from innkeeper.domain.errors import Refusal
from innkeeper.domain.ids import ClassId, ConsumerUuid, Generation, ProviderId
from innkeeper.domain.placement import Claim, ConsumerClaim
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
    """Make consumers for allocations that have none, of whom ``owners`` tells, else of nobody.

    What they hold is claimed anew by the same step that lets it go.
    """
    told = []
    for uuid, count in audit.without_consumer(tx, keys):
        side = owners.get(uuid, TransferSide(ConsumerUuid(uuid), NOBODY, NOBODY, "UNKNOWN"))
        try:
            with step(tx):
                _claim_again(tx, side, now)
        except Refusal:
            # Somebody came between, or a provider does not even give what is held of it.
            continue
        told.append(f"{uuid} has its {count} allocations, of project {side.project_id}")
    return told


def _claim_again(tx: Tx, side: TransferSide, now: datetime) -> None:
    amounts: dict[ProviderId, dict[ClassId, int]] = {}
    seen: dict[ProviderId, Generation] = {}
    for row in allocations.of_consumers(tx, [side.uuid]):
        amounts.setdefault(row.provider_id, {})[row.class_id] = row.used
        seen[row.provider_id] = row.provider_generation
    freed = claims.release(tx, [side.uuid], now)
    wanted = ConsumerClaim(
        uuid=side.uuid,
        project_id=side.project_id,
        user_id=side.user_id,
        amounts=amounts,
        seen=None,
        consumer_type=side.consumer_type,
    )
    (refusal,) = claims.commit_together(tx, [Claim((wanted,), seen)], now, given_back=freed)
    if refusal is not None:
        raise refusal


def remove_idle(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Remove consumers that hold nothing."""
    idle = [ConsumerUuid(uuid) for (uuid,) in audit.idle_consumers(tx, keys)]
    claims.release(tx, idle, now)
    return [f"{uuid} is removed" for uuid in idle]


def write_roots(tx: Tx, keys: Sequence[str], now: datetime) -> list[str]:
    """Write the root that a provider's parents lead to, where they lead to one."""
    told = []
    wrong = [uuid for (uuid,) in audit.wrong_roots(tx, keys)]
    for uuid, provider_id in sorted(providers.ids_by_uuid(tx, wrong).items()):
        root_id = _root_of(tx, provider_id)
        if root_id is None:
            continue
        providers.write_root(tx, provider_id, None if root_id == provider_id else root_id, now)
        changes.add_always_read(tx, sorted({provider_id, root_id}), now)
        told.append(f"provider {uuid} has the root of its parents")
    return told


def _root_of(tx: Tx, provider_id: ProviderId) -> ProviderId | None:
    """The last one upwards; ``None`` where the way up leads back."""
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
    """Tell the change feed where providers are."""
    found = audit.missing_changes(tx, keys)
    # Both: the generation is what was missing, and who has it already is to read all the same.
    changes.add(tx, [(ProviderId(row[1]), row[2]) for row in found], now)
    changes.add_always_read(tx, [ProviderId(row[1]) for row in found], now)
    return [f"told of provider {row[0]} at generation {row[2]}" for row in found]


REPAIRS = {IDLE_CONSUMER.kind: remove_idle, WRONG_ROOT.kind: write_roots, UNTOLD.kind: tell_again}
"""Beside :func:`adopt`, for which one has to know whose the consumers are."""
