"""A store whose commits fail, as after a conflict with another writer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from innkeeper.domain.errors import Busy
from innkeeper.store.transactions import Store, Tx


class FailingCommits(Store):
    """A store that rejects every commit at its very end."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.backend, store.engines)

    @contextmanager
    def write(self) -> Iterator[Tx]:
        """Run the write, then roll it back."""
        with super().write() as tx:
            yield tx
            raise Busy("Somebody else was faster.")
