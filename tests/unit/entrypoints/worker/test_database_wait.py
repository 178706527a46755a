"""A start retries temporary errors, up to a time limit."""

from __future__ import annotations

import pytest
import structlog

from innkeeper.domain.errors import Busy, NotLetIn, Unreachable
from innkeeper.engine.retry import START_ON_FILE
from innkeeper.entrypoints.worker.database_wait import DatabaseWait, NotThere

DATABASE_WAIT_S = 60.0


def swift() -> float:
    """Return the number for which the pause is shortest."""
    return -0.5


def test_temporary_errors_are_retried() -> None:
    errors = [Unreachable("Nobody is there."), Busy("Others write.")]

    def make() -> str:
        if errors:
            raise errors.pop()
        return "made"

    with structlog.testing.capture_logs() as told:
        assert DatabaseWait(DATABASE_WAIT_S, swift)(make) == "made"
    assert [each["why"] for each in told] == ["Others write.", "Nobody is there."]
    assert {each["event"] for each in told} == {"database_awaited"}


def test_the_wait_times_out() -> None:
    def make() -> None:
        raise Unreachable("Nobody is there.")

    with pytest.raises(NotThere) as ended:
        DatabaseWait(0.0, swift)(make)
    assert str(ended.value) == ("Cannot use the database: Nobody is there. Gave up after 0 s.")


@pytest.mark.parametrize("error", [NotLetIn("Not you."), Unreachable("A file is missing.")])
def test_other_errors_are_raised_at_once(error: Exception) -> None:
    def make() -> None:
        raise error

    with pytest.raises(type(error)):
        DatabaseWait(DATABASE_WAIT_S, swift, START_ON_FILE)(make)
