"""A process that claims units until none is left; ``test_writers`` starts several.

It reads in one transaction and commits in another, as services with a host table do, so other
processes commit in between. A claim that fails the comparison reads again.
"""

from __future__ import annotations

import json
import sys
import uuid

from innkeeper.domain.errors import ProviderChanged, Unavailable
from innkeeper.domain.ids import ClassId, ConsumerUuid, ProviderId
from innkeeper.domain.placement import Claim, ConsumerClaim
from innkeeper.settings import load
from innkeeper.store.queries.placement import capacity, names
from innkeeper.store.transactions import Store
from innkeeper.systems.placement import claims
from innkeeper.wiring import connect, now

CLASS = "VCPU"


class Claimant:
    """Claims one unit at a time of one provider, and counts the results."""

    def __init__(self, store: Store, provider_id: ProviderId) -> None:
        self._store = store
        self._provider_id = provider_id
        self._class_id: ClassId | None = None
        self.claimed = 0
        self.conflicts = 0

    def run(self) -> None:
        """Claim until nothing is left."""
        with self._store.read() as tx:
            self._class_id = names.class_ids(tx)[CLASS]
        while self._claim_one():
            pass

    def _claim_one(self) -> bool:
        assert self._class_id is not None
        consumer = ConsumerUuid(str(uuid.uuid4()))
        amounts = {self._provider_id: {self._class_id: 1}}
        wanted = ConsumerClaim(consumer, "project", "user", amounts, None, is_new_id=True)
        with self._store.read() as tx:
            views = capacity.views(tx, [self._provider_id])
        if claims.find_misfit(views, [wanted], {}) is not None:
            return False
        seen = {self._provider_id: views[self._provider_id].generation}
        try:
            with self._store.write() as tx:
                (refusal,) = claims.commit_together(tx, [Claim((wanted,), seen)], now())
        except Unavailable:
            # The claim was not acknowledged; the sums at the end show that it was not committed.
            self.conflicts += 1
            return True
        assert refusal is None or isinstance(refusal, ProviderChanged), refusal
        self.claimed += refusal is None
        self.conflicts += refusal is not None
        return True


def main() -> None:
    """Wait for a line, so that all begin at once; then claim, and print the results."""
    directory, provider_id = sys.argv[1], ProviderId(int(sys.argv[2]))
    store = connect(load(None, environ={}, overrides={"data_dir": directory}))
    claimant = Claimant(store, provider_id)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    claimant.run()
    store.dispose()
    json.dump({"claimed": claimant.claimed, "conflicts": claimant.conflicts}, sys.stdout)


if __name__ == "__main__":
    main()
