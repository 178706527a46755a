"""Stores whose commits fail or wait after all of a batch was written, and planners for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from innkeeper.domain.compute import BootRequest
from innkeeper.domain.errors import Doubtful
from innkeeper.engine.executor import Executor
from innkeeper.store.transactions import Store, Tx


class Flushes(Store):
    """A store that calls ``flush`` before each commit, and fails if that raises an error.

    If ``flush`` raises :class:`Doubtful`, the commit succeeds, and then the error is raised.
    When ``flush`` is called, planning ahead has already begun.
    """

    def __init__(self, store: Store, flush: Callable[[], None]) -> None:
        super().__init__(store.backend, store.engines)
        self._flush = flush

    @contextmanager
    def write(self) -> Iterator[Tx]:
        """See ``Store``."""
        doubt: Doubtful | None = None
        with super().write() as tx:
            yield tx
            try:
                self._flush()
            except Doubtful as error:
                doubt = error
        if doubt is not None:
            raise doubt


class KnowingPlanner:
    """Plans given requests ahead, in the thread of the batch, as far as that is possible."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.requests: Sequence[BootRequest] = ()
        self.planned = 0

    @property
    def is_needed(self) -> bool:
        """See :class:`innkeeper.engine.executor.Planner`."""
        return bool(self.requests)

    def begin(self, *, has_followed: bool) -> None:
        """See :class:`innkeeper.engine.executor.Planner`."""
        requests, self.requests = self.requests, ()
        for each in requests:
            if not self._executor.plan_ahead(each):
                break
            self.planned += 1

    def end(self) -> None:
        """See :class:`innkeeper.engine.executor.Planner`."""
