"""Counts SQL statements, for tests that limit how many an operation takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from tests.support.clouds import Cloud


class Counter:
    """Counts the statements that a database receives."""

    def __init__(self, cloud: Cloud) -> None:
        self.count = 0
        for engine in cloud.store.engines:
            sa.event.listen(engine, "before_cursor_execute", self._see)

    def _see(self, *_: Any) -> None:
        self.count += 1

    def of(self, work: Callable[[], Any]) -> int:
        """Return the number of statements that an operation executes."""
        before = self.count
        work()
        return self.count - before
