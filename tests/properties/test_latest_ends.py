"""The end that a refused change of an active lease names, compared with a timeline of minutes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from innkeeper.domain.leases import LeaseStatus
from innkeeper.systems.leases.updates import LeaseChange
from tests.properties.test_lease_minutes import Leasing, size_of, slots, whole
from tests.support.lease_worlds import LeaseWorld

LATER = 40
LONG = 60


@pytest.mark.parametrize("seed", range(6))
def test_the_latest_end_is_the_last_minute_that_fits(tmp_path: Path, seed: int) -> None:
    dice, judge = random.Random(seed), Leasing()  # noqa: S311
    judge.world = world = LeaseWorld(tmp_path, cleaning_min=dice.choice((0, 5)))
    named = 0
    for start in (0, 0, 0, *(dice.randrange(15, LATER) for _ in range(8))):
        required = dice.choice(("", "", '["==", "$kind", "a"]'))
        body = whole(1, dice.randint(0, 1), required)
        if dice.random() < 0.6:
            cpus, memory, amount = (dice.randint(1, 3) for _ in range(3))
            body = slots(cpus, memory, amount, dice.choice((None, True, False)), required)
        end = start + dice.randint(10, 20)
        judge.attempt(lambda: world.create([body], start, end, "project"))  # noqa: B023
    for lease in world.present():
        if lease.status != LeaseStatus.ACTIVE:
            continue
        (part,) = lease.reservations
        for more in (0, 1):
            least = part.units_min + more
            spare = max(0, part.units_max - least) if part.is_whole else 0
            sizes = {part.uuid: size_of(part.is_whole, least, spare)}
            wanted = LeaseChange(end_at=world.at(LONG), reservations=sizes)
            expected = judge.expected(lease, 0, LONG, least, spare)
            made = judge.attempt(lambda: world.change(lease.uuid, wanted))  # noqa: B023
            assert (made is not None) == bool(expected)
            if judge.refusal is not None:
                judge.judge_end(lease, LONG, least, spare)
                named += judge.refusal.details["latest_end_date"] is not None
            if made is not None:
                break
    world.judge()
    world.movers.close()
    assert named
