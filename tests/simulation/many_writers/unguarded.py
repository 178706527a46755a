"""The program of a service without guards: a bug that the checker must find.

It serves as ``innkeeper serve`` does, except that its writers neither queue nor compare
generations nor check capacity again. Nor do they forward writes to a leader, which would carry them
out one after the other.
"""

from __future__ import annotations

from innkeeper.domain.slices import Settings
from innkeeper.store.guards import NO_GUARDS
from innkeeper.store.transactions import Store
from innkeeper.wiring import Service, connect
from tests.simulation.many_writers.own_program import serve


def unguarded(settings: Settings) -> Service:
    """Create a service whose store has no guards."""
    guarded = connect(settings)
    return Service(settings, Store(guarded.backend, guarded.engines, NO_GUARDS))


if __name__ == "__main__":
    serve(unguarded, forward_writes=False)
