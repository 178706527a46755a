"""Plans with pools on thousands of small tables, compared with a slow and obvious planner."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from innkeeper.domain.placing import BuildPlan, RequestSpec
from innkeeper.scheduling.depletion import undo
from innkeeper.scheduling.pipeline import Pipeline, select
from tests.support.tables import (
    ANY_AMOUNT,
    POOL_IDS,
    Pool,
    Sketch,
    Units,
    add_pools,
    asking,
    picture,
    pipeline_of,
    plan,
    table_of,
)

CLASSES = ("VCPU", "DISK_GB", "CUSTOM_GOLD")
RULES = (ANY_AMOUNT, (1, 3, 1), (2, 8, 2), (3, 8, 2))
AGGREGATES = st.frozensets(st.sampled_from("abc"), max_size=2)
amounts = st.dictionaries(st.sampled_from(CLASSES), st.integers(0, 9))
units = st.dictionaries(st.sampled_from(CLASSES), st.sampled_from(RULES))
HOSTS = st.lists(
    st.builds(
        Sketch,
        name=st.just(""),
        free=st.one_of(amounts, st.fixed_dictionaries({"VCPU": st.integers(1, 9)})),
        # More is held than there is, because an operator shrank the pool.
        used=st.dictionaries(st.sampled_from(CLASSES), st.integers(0, 3)),
        units=units,
        aggregates=AGGREGATES,
    ),
    max_size=6,
).map(lambda hosts: [Sketch(**{**h.__dict__, "name": f"h{n}"}) for n, h in enumerate(hosts)])
POOLS = st.lists(
    st.builds(Pool, free=amounts, units=units, aggregates=AGGREGATES), min_size=1, max_size=4
)
SPECS = st.builds(
    lambda wanted, count, seed: (wanted, count, seed),
    st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 4), min_size=1),
    st.integers(1, 12),
    st.integers(0, 2**63),
)
PIPELINES = st.sampled_from([1.0, -1.0, 0.0]).map(
    lambda by: (pipeline_of(FreeDiskWeigher=by, FreeVcpusWeigher=0.5), by)
)
CLOSE = 1e-9


def gives(rule: Units, amount: int) -> bool:
    """Whether the unit rules allow an amount."""
    least, most, step = rule
    return least <= amount <= most and (amount == least or amount % step == 0)


class Slow:
    """Hosts and pools in plain Python."""

    def __init__(self, hosts: Sequence[Sketch], pools: Sequence[Pool]) -> None:
        self.hosts = {each.name: each for each in hosts}
        self.pools = dict(enumerate(pools, start=POOL_IDS))
        self.free = {each.name: dict(each.free) for each in hosts}
        self.left = {number: dict(each.free) for number, each in self.pools.items()}

    def has_own(self, host: str, name: str) -> bool:
        """Whether a host has any capacity of a class: what is free and what is held."""
        each = self.hosts[host]
        return each.free.get(name, 0) + each.used.get(name, 0) > 0

    def lenders(self, host: str, name: str, amount: int) -> dict[int, int]:
        """What is left in each pool that can provide this amount of a class to a host."""
        near = self.hosts[host].aggregates
        return {
            number: self.left[number].get(name, 0)
            for number, each in self.pools.items()
            if each.aggregates & near
            and self.left[number].get(name, 0) >= amount
            and gives(each.units.get(name, ANY_AMOUNT), amount)
        }

    def takes(self, host: str, wanted: dict[str, int]) -> bool:
        """Whether a server fits on a host."""
        fits = [self.fits(host, name, amount) for name, amount in wanted.items()]
        return all(fits) and any(self.has_own(host, name) for name in wanted)

    def fits(self, host: str, name: str, amount: int) -> bool:
        """Whether a host, or a pool that serves it, has this amount of a class."""
        if not self.has_own(host, name):
            return bool(self.lenders(host, name, amount))
        rule = self.hosts[host].units.get(name, ANY_AMOUNT)
        return self.free[host].get(name, 0) >= amount and gives(rule, amount)

    def at_hand(self, host: str, name: str) -> float:
        """What is left of a class for a host: its own, or that of the pool with the most left."""
        if self.has_own(host, name):
            return self.free[host].get(name, 0)
        near = self.hosts[host].aggregates
        lending = [
            self.left[number].get(name, 0)
            for number, each in self.pools.items()
            if each.aggregates & near and name in each.free
        ]
        return max(lending, default=0)


class SlowScale:
    """Plain weights: shares of the largest capacity of one host or pool, taken or not."""

    def __init__(self, slow: Slow, by: float) -> None:
        self.slow = slow
        self.parts: list[tuple[str, float]] = []
        owners: list[Sketch | Pool] = [*slow.hosts.values(), *slow.pools.values()]
        for name, multiplier in (("DISK_GB", by), ("VCPU", 0.5)):
            wholes = [each.free.get(name, 0) + each.used.get(name, 0) for each in owners]
            most = max(wholes, default=0)
            self.parts.append((name, multiplier / (most if most > 0 else 1.0)))

    def weight(self, host: str) -> float:
        """One host's weight now."""
        return sum(self.slow.at_hand(host, name) * factor for name, factor in self.parts)


def replay(slow: Slow, spec: RequestSpec, by: float, made: BuildPlan) -> None:
    """Check a plan server by server."""
    wanted = dict(spec.amounts)
    entries = made.entries
    first = [each for each in slow.hosts if slow.takes(each, wanted)]
    scale = SlowScale(slow, by)
    for entry in entries:
        candidates = [each for each in first if slow.takes(each, wanted)]
        assert entry.host in candidates
        best = max(scale.weight(each) for each in candidates)
        assert scale.weight(entry.host) >= best - CLOSE
        borrowed = {each.class_name: each for each in entry.loans}
        for name, amount in wanted.items():
            if slow.has_own(entry.host, name):
                assert name not in borrowed
                slow.free[entry.host][name] -= amount
                continue
            able = slow.lenders(entry.host, name, amount)
            loan = borrowed[name]
            assert loan.amount == amount
            assert able[loan.provider_id] == max(able.values())
            slow.left[loan.provider_id][name] -= amount
    if len(entries) < spec.count:
        assert not [each for each in first if slow.takes(each, wanted)]
    for number, left in slow.left.items():
        assert all(amount >= 0 for amount in left.values()), number


@settings(max_examples=400)
@given(HOSTS, POOLS, SPECS, PIPELINES)
def test_every_entry_of_a_plan_is_one_that_a_person_would_make(
    hosts: list[Sketch],
    pools: list[Pool],
    asked: tuple[dict[str, int], int, int],
    made_of: tuple[Pipeline, float],
) -> None:
    wanted, count, seed = asked
    pipeline, by = made_of
    table = add_pools(table_of(*hosts), *pools)
    spec = asking(0, 0, 0, amounts=wanted, count=count, seed=seed)
    before = picture(table)
    left, _ = select(pipeline, table, spec)
    made = plan(pipeline, table, spec)
    assert bool(left.any()) == bool(made.entries)
    replay(Slow(hosts, pools), spec, by, made)
    touched = {each.provider_id for each in made.entries}
    touched |= {loan.provider_id for each in made.entries for loan in each.loans}
    assert set(made.seen) == touched
    undo(table, spec, made)
    assert picture(table) == before
