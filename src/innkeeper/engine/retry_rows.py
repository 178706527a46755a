"""The form of the rows in the table of retries, :mod:`innkeeper.engine.retry`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from innkeeper.domain.slices import Settings


@dataclass(frozen=True, slots=True)
class Setting:
    """The name of a numeric setting, and a function that reads its value."""

    name: str
    of: Callable[[Settings], float]


@dataclass(frozen=True, slots=True)
class Retry:
    """One row of the table.

    The modules in ``where`` retry after one of the ``errors``. ``attempts_max`` includes the first
    attempt, so 1 means no retry. No attempt starts later than ``within_s``. ``pauses_s`` are the
    pauses before the retries; the last pause is repeated. ``answer`` tells what the client gets
    after the last failure. For :func:`.retry.again`, it is the message of the raised error.
    """

    errors: tuple[type[Exception], ...]
    happened: str
    repeated: str
    where: tuple[str, ...]
    answer: str
    attempts_max: int | Setting | None = None
    within_s: float | Setting | None = None
    pauses_s: tuple[float, ...] = ()

    def attempts(self, settings: Settings) -> int:
        """Return the maximum number of attempts. The row must limit this number."""
        most = self.attempts_max
        assert most is not None, "this row limits the time, not the number of attempts"
        return int(most.of(settings)) if isinstance(most, Setting) else most
