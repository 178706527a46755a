"""Waits after failed logins slow down attackers, but not the user."""

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

LIMITS = AttemptLimits(free=3, wait_max_s=60.0)
ANN = attempts.attempt("ann", "198.51.100.7")


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def fail(tx: Tx, times: int, tried: Attempt = ANN) -> None:
    for _ in range(times):
        attempts.fail(tx, tried, LIMITS, NOW)


def wait_s(tx: Tx, tried: Attempt = ANN, passed_s: float = 0.0) -> int:
    """The reported wait until the next attempt."""
    try:
        attempts.check(tx, tried, LIMITS, NOW + seconds(passed_s))
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
        assert attempts.check(tx, ANN, LIMITS, NOW + seconds(60)) == 12


def test_the_right_password_ends_the_wait(store: Store) -> None:
    with store.write() as tx:
        fail(tx, 10)
        attempts.succeed(tx, ANN)
        assert wait_s(tx) == 0


def test_a_new_password_ends_waits_at_all_sources(store: Store) -> None:
    elsewhere = attempts.attempt("ann", "203.0.113.9")
    other = attempts.attempt("bob", "203.0.113.9")
    with store.write() as tx:
        for tried in (ANN, elsewhere, other):
            fail(tx, 10, tried)
        attempts.forgive(tx, "ann")
        assert [wait_s(tx, tried) for tried in (ANN, elsewhere, other)] == [0, 0, 60]


def test_attackers_at_other_sources_do_not_lock_out_the_user(store: Store) -> None:
    with store.write() as tx:
        fail(tx, 100, attempts.attempt("ann", "203.0.113.9"))
        assert wait_s(tx) == 0


def test_a_wait_applies_to_one_name_only(store: Store) -> None:
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
def test_addresses_of_one_source(first: str, second: str, are_one: bool) -> None:
    made = attempts.attempt("ann", first), attempts.attempt("ann", second)
    assert (made[0] == made[1]) is are_one


def test_only_hashes_are_stored(store: Store) -> None:
    assert "ann" not in f"{ANN}" and "198.51.100.7" not in f"{ANN}"
    assert attempts.attempt("a", "b c").subject != attempts.attempt("a b", "c").subject


def test_old_failures_are_forgotten(store: Store) -> None:
    late = LIMITS.forgotten_after.total_seconds() + 1
    with store.write() as tx:
        fail(tx, 10)
        assert attempts.check(tx, ANN, LIMITS, NOW + seconds(late)) == 0
        bob = attempts.attempt("bob", "198.51.100.7")
        attempts.fail(tx, bob, LIMITS, NOW + seconds(late))
        assert login_failures.size(tx) == 1


def test_a_clock_that_steps_back_does_not_extend_a_wait(store: Store) -> None:
    with store.write() as tx:
        fail(tx, 4)
        assert wait_s(tx, passed_s=-24 * 3600) == 2


def test_a_count_outlasts_the_longest_wait(store: Store) -> None:
    limits = AttemptLimits(free=1, wait_max_s=3600.0)
    with store.write() as tx:
        for _ in range(20):
            attempts.fail(tx, ANN, limits, NOW)
        with pytest.raises(TooManyAttempts) as refused:
            attempts.check(tx, ANN, limits, NOW + seconds(3000))
        assert refused.value.retry_after_s == 600


def test_the_number_of_counts_is_bounded(store: Store) -> None:
    with store.write() as tx:
        others = {"source": "x", "count": 1, "last_at": NOW + seconds(1)}
        rows = [{"subject": f"{n}", **others} for n in range(attempts.ROWS_MAX - 2)]
        tx.execute(identity.login_failures.insert(), rows)
        fail(tx, 10)
        fail(tx, 1, attempts.attempt("bob", "x"))
        assert login_failures.size(tx) == attempts.ROWS_MAX
        assert wait_s(tx) == 60
        attempts.fail(tx, attempts.attempt("eve", "x"), LIMITS, NOW + seconds(2))
        assert login_failures.size(tx) == attempts.ROWS_MAX
        # The oldest count is deleted; the waits of the others remain.
        assert wait_s(tx) == 0 or wait_s(tx, attempts.attempt("bob", "x")) == 0
