"""The guards against overcommitted providers, and against build plans that are carried out twice.

Only tests switch guards off: they build a :class:`Store` with fewer guards, and check that the
simulations of many writers and of trees of zones then fail. No setting switches a guard off.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Guards:
    """The guards of a store's transactions: ``Store(backend, engines, Guards(...))``.

    ``turns``: write transactions run one after the other (see the backends). ``generations``: a
    claim is written only if its providers are at the generations that the claimant saw.
    ``capacity``: no claim leaves a provider over its capacity. ``single_use``: an entry of a build
    plan makes at most one server. It never makes a server that the zone parent has given up.
    """

    turns: bool = True
    generations: bool = True
    capacity: bool = True
    single_use: bool = True


NO_GUARDS = Guards(turns=False, generations=False, capacity=False)
"""For tests that prove that the guards are needed."""
