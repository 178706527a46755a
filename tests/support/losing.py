"""A store whose commits come to nothing, as when somebody else was faster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from innkeeper.domain.errors import Busy
from innkeeper.store.transactions import Store, Tx


class Losing(Store):
    """A store that loses whatever is written: every commit is refused at its very end."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.backend, store.engines)

    @contextmanager
    def write(self) -> Iterator[Tx]:
        """Write, and then do not."""
        with super().write() as tx:
            yield tx
            raise Busy("Somebody else was faster.")
