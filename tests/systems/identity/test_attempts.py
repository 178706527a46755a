"""Guessing passwords is slow, for whoever guesses and for nobody else."""

from __future__ import annotations

from datetime import timedelta

import pytest

from innkeeper.domain.errors import TooManyAttempts
from innkeeper.store.queries.identity import login_failures
from innkeeper.store.tables import identity
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.identity import attempts
from innkeeper.systems.identity.attempts import Attempt, AttemptLimits
from tests.support.stores import NOW

TERMS = AttemptLimits(free=3, wait_max_s=60.0)
ANN = attempts.attempt("ann", "198.51.100.7")


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def fail(tx: Tx, times: int, tried: Attempt = ANN) -> None:
    for _ in range(times):
        attempts.fail(tx, tried, TERMS, NOW)


def wait_s(tx: Tx, tried: Attempt = ANN, passed_s: float = 0.0) -> int:
    """How long it is said to take until the next attempt."""
    try:
        attempts.check(tx, tried, TERMS, NOW + seconds(passed_s))
    except TooManyAttempts as refusal:
        return refusal.retry_after_s
    return 0


def test_waits_grow_and_end(store: Store) -> None:
    with store.write() as tx:
        seen = []
        for _ in range(12):
            seen.append(wait_s(tx))
            fail(tx, 1)
        assert seen == [0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60]
        assert wait_s(tx, passed_s=59.5) == 1
        assert wait_s(tx, passed_s=60) == 0
        assert attempts.check(tx, ANN, TERMS, NOW + seconds(60)) == 12


def test_the_right_password_ends_it(store: Store) -> None:
    with store.write() as tx:
        fail(tx, 10)
        attempts.succeed(tx, ANN)
        assert wait_s(tx) == 0


def test_a_new_password_ends_it_everywhere(store: Store) -> None:
    elsewhere = attempts.attempt("ann", "203.0.113.9")
    other = attempts.attempt("bob", "203.0.113.9")
    with store.write() as tx:
        for tried in (ANN, elsewhere, other):
            fail(tx, 10, tried)
        attempts.forgive(tx, "ann")
        assert [wait_s(tx, tried) for tried in (ANN, elsewhere, other)] == [0, 0, 60]


def test_strangers_elsewhere_keep_nobody_out(store: Store) -> None:
    with store.write() as tx:
        fail(tx, 100, attempts.attempt("ann", "203.0.113.9"))
        assert wait_s(tx) == 0


def test_one_waits_for_one_name_only(store: Store) -> None:
    with store.write() as tx:
        fail(tx, 100, attempts.attempt("bob", "198.51.100.7"))
        assert wait_s(tx) == 0


@pytest.mark.parametrize(
    ("first", "second", "are_one"),
    [
        ("2001:db8::1", "2001:db8::ffff:ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:198.51.100.7", "198.51.100.7", True),
        ("fe80::1%eth0", "fe80::1", True),
        ("198.51.100.7", "198.51.100.8", False),
        ("", "", True),
        ("no address", "another", False),
    ],
)
def test_who_is_the_same_source(first: str, second: str, are_one: bool) -> None:
    made = attempts.attempt("ann", first), attempts.attempt("ann", second)
    assert (made[0] == made[1]) is are_one


def test_nothing_that_was_typed_is_written_down(store: Store) -> None:
    assert "ann" not in f"{ANN}" and "198.51.100.7" not in f"{ANN}"
    assert attempts.attempt("a", "b c").subject != attempts.attempt("a b", "c").subject


def test_what_is_long_ago_is_forgotten(store: Store) -> None:
    late = TERMS.forgotten_after.total_seconds() + 1
    with store.write() as tx:
        fail(tx, 10)
        assert attempts.check(tx, ANN, TERMS, NOW + seconds(late)) == 0
        bob = attempts.attempt("bob", "198.51.100.7")
        attempts.fail(tx, bob, TERMS, NOW + seconds(late))
        assert login_failures.size(tx) == 1


def test_a_clock_that_steps_back_makes_nobody_wait_longer(store: Store) -> None:
    with store.write() as tx:
        fail(tx, 4)
        assert wait_s(tx, passed_s=-24 * 3600) == 2


def test_a_longest_wait_of_an_hour_is_not_forgotten_before(store: Store) -> None:
    limits = AttemptLimits(free=1, wait_max_s=3600.0)
    with store.write() as tx:
        for _ in range(20):
            attempts.fail(tx, ANN, limits, NOW)
        with pytest.raises(TooManyAttempts) as refused:
            attempts.check(tx, ANN, limits, NOW + seconds(3000))
        assert refused.value.retry_after_s == 600


def test_there_are_no_more_than_so_many(store: Store) -> None:
    with store.write() as tx:
        others = {"source": "x", "count": 1, "last_at": NOW + seconds(1)}
        rows = [{"subject": f"{n}", **others} for n in range(attempts.ROWS_MAX - 2)]
        tx.execute(identity.login_failures.insert(), rows)
        fail(tx, 10)
        fail(tx, 1, attempts.attempt("bob", "x"))
        assert login_failures.size(tx) == attempts.ROWS_MAX
        assert wait_s(tx) == 60
        attempts.fail(tx, attempts.attempt("eve", "x"), TERMS, NOW + seconds(2))
        assert login_failures.size(tx) == attempts.ROWS_MAX
        # The one that was quiet the longest went: waits of the others stand.
        assert wait_s(tx) == 0 or wait_s(tx, attempts.attempt("bob", "x")) == 0
