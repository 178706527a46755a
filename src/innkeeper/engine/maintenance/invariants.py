"""The invariants of all rooms (parts of the data model), with their checks and repairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from innkeeper.domain.auditing import Finding, Invariant
from innkeeper.engine.transactions import Tx
from innkeeper.store import soundness
from innkeeper.systems.compute import audit as compute_audit
from innkeeper.systems.compute import repair as compute_repair
from innkeeper.systems.identity import audit as identity_audit
from innkeeper.systems.leases import audit as lease_audit
from innkeeper.systems.pclouds import audit as pcloud_audit
from innkeeper.systems.placement import audit as placement_audit
from innkeeper.systems.placement import repair as placement_repair
from innkeeper.systems.pods import audit as pod_audit
from innkeeper.systems.volumes import audit as volume_audit
from innkeeper.systems.zones import audit as zone_audit

INVARIANTS: tuple[Invariant, ...] = (
    *soundness.INVARIANTS,
    *identity_audit.INVARIANTS,
    *placement_audit.INVARIANTS,
    *zone_audit.INVARIANTS,
    *volume_audit.INVARIANTS,
    *compute_audit.INVARIANTS,
    *pcloud_audit.INVARIANTS,
    *lease_audit.INVARIANTS,
    *pod_audit.INVARIANTS,
)
ROOMS: Mapping[str, Callable[[Tx], Iterable[Finding]]] = {
    soundness.ROOM: soundness.findings,
    identity_audit.ROOM: identity_audit.findings,
    placement_audit.ROOM: placement_audit.findings,
    zone_audit.ROOM: zone_audit.findings,
    volume_audit.ROOM: volume_audit.findings,
    compute_audit.ROOM: compute_audit.findings,
    pcloud_audit.ROOM: pcloud_audit.findings,
    lease_audit.ROOM: lease_audit.findings,
    pod_audit.ROOM: pod_audit.findings,
}
Repair = Callable[[Tx, Sequence[str], datetime], list[str]]
REPAIRS: Mapping[str, Repair] = {
    **soundness.REPAIRS,
    **placement_repair.REPAIRS,
    **volume_audit.REPAIRS,
    **compute_repair.REPAIRS,
    **pcloud_audit.REPAIRS,
    **lease_audit.REPAIRS,
}
"""The repair for each kind of finding. A repair gets the keys of findings, and returns one text for
each finding that it has repaired."""
AT_ONCE: Mapping[str, int] = pcloud_audit.AT_ONCE
"""The maximum number of findings that are repaired in one transaction, by kind. Kinds that are not
listed have the usual, higher limit."""


def findings(tx: Tx) -> list[Finding]:
    """Return all violations of invariants. If a room cannot be read, that is a finding, too."""
    found: list[Finding] = []
    for room, look in ROOMS.items():
        try:
            found += look(tx)
        except soundness.UNREAD as error:
            why = f"{room} cannot be checked: {type(error).__name__}: {error}"
            found.append(soundness.UNREADABLE.broken(room, " ".join(why.split())))
    return found
