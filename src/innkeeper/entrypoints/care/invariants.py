"""All rooms' invariants together: what is looked for, and what can be repaired."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from innkeeper.domain.auditing import Finding, Invariant
from innkeeper.store import soundness
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute import audit as compute_audit
from innkeeper.systems.compute import mending as compute_mending
from innkeeper.systems.identity import audit as identity_audit
from innkeeper.systems.placement import audit as placement_audit
from innkeeper.systems.placement import mending as placement_mending

INVARIANTS: tuple[Invariant, ...] = (
    *soundness.INVARIANTS,
    *identity_audit.INVARIANTS,
    *placement_audit.INVARIANTS,
    *compute_audit.INVARIANTS,
)
Repair = Callable[[Tx, Sequence[str], datetime], list[str]]
REPAIRS: Mapping[str, Repair] = {
    **soundness.REPAIRS,
    **placement_mending.REPAIRS,
    **compute_mending.REPAIRS,
}
"""By kind: given what findings are about, repairs them and tells what it did."""


def findings(tx: Tx) -> list[Finding]:
    """All that is not as it must be."""
    return [
        *soundness.findings(tx),
        *identity_audit.findings(tx),
        *placement_audit.findings(tx),
        *compute_audit.findings(tx),
    ]
