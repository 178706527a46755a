"""What stands between a claim and a double sale; all of it, always, except in one test.

The simulation of many writers is worth something only if it fails when a guard is missing. Its
service is made of a :class:`Store` with other guards than these; no setting leads here.

Always true: a store has all guards unless whoever makes it says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Guards:
    """Which guards a store's transactions have: ``Store(backend, engines, Guards(...))``.

    ``turns``: who writes waits for all who write (see the backends). ``generations``: a claim
    is written only where the generations of its providers are as the claimant saw them, which
    is compared when it is taken in and again by the update. ``capacity``: no claim that gains
    something leaves a provider with more than it gives.
    """

    turns: bool = True
    generations: bool = True
    capacity: bool = True


NO_GUARDS = Guards(turns=False, generations=False, capacity=False)
"""For the proof that the proof can fail."""

WITHOUT_TURN = "innkeeper_without_turn"
"""The option of a connection whose transactions write without waiting for their turn."""
