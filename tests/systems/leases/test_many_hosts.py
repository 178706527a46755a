"""Steps, for which all other writers wait, do not grow with the number of a lease's hosts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from innkeeper.domain.leases import Demand, Lease, LeaseStatus, Window
from innkeeper.store.transactions import Tx
from innkeeper.systems.leases import events, handover, leases, sharing
from tests.support.clouds import reported
from tests.support.lease_operator import LeaseOperator
from tests.support.moves import Movers
from tests.support.statements import Counter

HOUR_S = 3600.0
FEW, MANY = 1, 6


SLOT = {"VCPU": 1}


def operator_of(folder: Path, hosts: int) -> tuple[LeaseOperator, Lease, Counter]:
    """Make a lease of so many hosts, with a server on each."""
    folder.mkdir()
    names = [f"a{number}" for number in range(hosts)]
    made = LeaseOperator(Movers(folder, *map(reported, names)))
    made.movers.is_judged = False
    made.keep(*names)
    lease = made.lease((hosts, hosts), start=0, end=HOUR_S)
    made.turn()
    for name in names:
        made.movers.boot(name, hints={"reservation": lease.reservations[0].uuid})
    return made, lease, Counter(made.cloud)


@pytest.fixture
def both(tmp_path: Path) -> Iterator[list[tuple[LeaseOperator, Lease, Counter]]]:
    """A lease of few hosts, and one of many, in clouds of their own."""
    made = [operator_of(tmp_path / str(hosts), hosts) for hosts in (FEW, MANY)]
    yield made
    for operator, *_ in made:
        operator.movers.close()


Case = tuple[LeaseOperator, Lease, Counter]


def step(operator: LeaseOperator, lease: Lease) -> None:
    act = partial(events.carry_out, uuid=lease.uuid, context=operator.context())
    operator.cloud.write(act)


def test_an_end_that_waits_for_agents(both: list[Case]) -> None:
    counts = []
    for operator, lease, counter in both:
        operator.delete(lease)
        counts.append(counter.of(partial(step, operator, lease)))
    assert counts[0] == counts[1]


def test_a_start_that_waits_for_an_end(both: list[Case]) -> None:
    counts = []
    for operator, lease, counter in both:
        count = lease.reservations[0].units_max
        following = operator.lease((count, count), start=HOUR_S, end=2 * HOUR_S)
        operator.movers.wait(HOUR_S)
        step(operator, lease)
        step(operator, following)
        counts.append(counter.of(partial(step, operator, following)))
    assert counts[0] == counts[1]


def test_sharing(both: list[Case]) -> None:
    counts = []
    for operator, lease, counter in both:

        def share(tx: Tx, operator: LeaseOperator = operator, uuid: str = lease.uuid) -> Lease:
            wanted: sharing.LeaseOptions = {"shared_with": ("friend",)}
            found = leases.get(tx, uuid)
            return sharing.change(tx, found, wanted, operator.context(), may_give=False)

        counts.append(counter.of(partial(operator.cloud.write, share)))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("amounts", [None, SLOT], ids=("whole", "slots"))
def test_starts_and_ends(tmp_path: Path, amounts: dict[str, int] | None) -> None:
    """A step takes as many statements for many hosts as for one."""
    assert MANY < handover.HOSTS_AT_ONCE
    counts = []
    for hosts in (FEW, MANY):
        names = [f"a{number}" for number in range(hosts)]
        (tmp_path / str(hosts)).mkdir()
        operator = LeaseOperator(Movers(tmp_path / str(hosts), *map(reported, names)))
        operator.keep(*names)
        counter = Counter(operator.cloud)
        taken: list[int] = []
        # The first lease of slots creates the child providers.
        for _ in range(2):
            window = Window(operator.moment(HOUR_S), operator.moment(2 * HOUR_S))
            lease = operator.make(window, [Demand(hosts, hosts, amounts, affinity=False)])
            taken = []
            for _ in range(2):
                operator.movers.wait(HOUR_S)
                taken.append(counter.of(partial(step, operator, lease)))
            assert operator.status(lease) == LeaseStatus.ENDED
        counts.append(taken)
        operator.movers.close()
    assert counts[0] == counts[1]


def test_a_lease_of_many_hosts_takes_several_steps(tmp_path: Path) -> None:
    """Each step has a limited number of hosts, and fewer hosts if they get their first slots."""
    hosts = handover.HOSTS_AT_ONCE + 1
    names = [f"a{number}" for number in range(hosts)]
    operator = LeaseOperator(Movers(tmp_path, *map(reported, names)))
    operator.movers.is_judged = False
    operator.keep(*names)
    for amounts, steps in ((SLOT, (20, 20, 12)), (SLOT, (50, 2)), (None, (50, 2))):
        window = Window(operator.moment(HOUR_S), operator.moment(2 * HOUR_S))
        lease = operator.make(window, [Demand(hosts, hosts, amounts, affinity=False)])
        operator.movers.wait(HOUR_S)
        act = partial(events.carry_out, uuid=lease.uuid, context=operator.context())
        # One more step for the reservation, and one for the event.
        assert [operator.cloud.write(act) for _ in steps] == [*steps[:-1], steps[-1] + 1]
        operator.wait(HOUR_S)
        assert operator.status(lease) == LeaseStatus.ENDED
    assert operator.broken() == []
    operator.movers.close()
