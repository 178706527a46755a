"""Where boots are decided; the decision thread's view of the rooms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from innkeeper.domain.ids import IdSource
from innkeeper.store.transactions import Tx


class BootDesk:
    """See :class:`innkeeper.entrypoints.api.decisions.Desk`."""

    def __init__(
        self, scheduling: Any, computing: Any, ids: IdSource, clock: Callable[[], datetime]
    ) -> None:
        self._ids = ids

    def load(self, tx: Tx) -> None:
        """Fill the host table from the store."""

    def boot(self, tx: Tx, requests: Sequence[Any]) -> list[Any]:
        """Decide on and write all requests."""
        raise AssertionError("not here yet")

    def explain(self, tx: Tx, request: Any) -> Any:
        """Decide without writing."""
        raise AssertionError("not here yet")

    def follow(self, tx: Tx) -> None:
        """Bring the host table up to what ``tx`` sees."""

    def forget(self) -> None:
        """Undo what did not come to be."""
