"""A service's ids cannot be guessed, and later ids sort after earlier ids."""

from __future__ import annotations

import time
import uuid

from innkeeper.domain.ids import UUID_PATTERN
from innkeeper.random_ids import DRAWN_AT_ONCE, RandomIds

VERSION = 7
MANY = 3 * DRAWN_AT_ONCE
SEED_BITS = 63


def test_an_id_is_a_uuid_that_begins_with_the_moment() -> None:
    before_ms = time.time_ns() // 1_000_000
    made = RandomIds().uuid()
    after_ms = time.time_ns() // 1_000_000
    assert UUID_PATTERN.fullmatch(made) is not None
    parsed = uuid.UUID(made)
    assert (parsed.version, parsed.variant) == (VERSION, uuid.RFC_4122)
    assert before_ms <= parsed.int >> 80 <= after_ms


def test_no_two_ids_and_no_two_seeds_are_alike() -> None:
    ids = RandomIds()
    made = [ids.uuid() for _ in range(MANY)]
    # The part after the time must differ, because all ids are made within a few milliseconds.
    assert len({each[15:] for each in made}) == MANY
    moments = [each[:13] for each in made]
    assert moments == sorted(moments)
    seeds = {ids.seed() for _ in range(MANY)}
    assert len(seeds) == MANY
    assert all(0 <= seed < 1 << SEED_BITS for seed in seeds)
