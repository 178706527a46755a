"""Equal requests of one batch are resolved once, but each is still checked separately."""

from __future__ import annotations

from pathlib import Path

import pytest

from innkeeper.domain.compute import Booted
from innkeeper.domain.errors import Invalid, QuotaExceeded
from innkeeper.domain.slices import Computing
from tests.support.clouds import Cloud, cloud_in, faults, reported

QUOTA = 5


@pytest.fixture
def cloud(tmp_path: Path) -> Cloud:
    """A cloud with room for more servers than the quota allows."""
    hosts = [reported(name, vcpus=8, memory_mb=16_384) for name in "abc"]
    return cloud_in(tmp_path, *hosts, computing=Computing(quota_instances=QUOTA))


def test_each_counts_the_servers_of_those_before_it(cloud: Cloud) -> None:
    outcomes = cloud.boot(*(cloud.request(2) for _ in range(3)))
    assert faults(outcomes[:2]) == [None, None]
    assert isinstance(outcomes[2], QuotaExceeded)
    assert "already used 4 of 5" in outcomes[2].message


def test_each_gets_as_many_servers_as_the_quota_leaves(cloud: Cloud) -> None:
    first, second = cloud.boot(cloud.request(1, 3), cloud.request(1, 3))
    assert isinstance(first, Booted)
    assert isinstance(second, Booted)
    assert [len(first.server_ids), len(second.server_ids)] == [3, 2]


def test_the_key_of_each_is_looked_up(cloud: Cloud) -> None:
    outcomes = cloud.boot(cloud.request(), cloud.request(key_name="unknown"), cloud.request())
    assert isinstance(outcomes[1], Invalid)
    assert faults([outcomes[0], outcomes[2]]) == [None, None]


def test_a_refused_one_does_not_refuse_the_others(cloud: Cloud) -> None:
    outcomes = cloud.boot(cloud.request(QUOTA + 1), cloud.request(), cloud.request())
    assert isinstance(outcomes[0], QuotaExceeded)
    assert faults(outcomes[1:]) == [None, None]


def test_equal_seeds_do_not_share_a_decision(cloud: Cloud) -> None:
    outcomes = cloud.boot(*(cloud.request(seed=7) for _ in range(3)))
    servers = [each.server_ids[0] for each in outcomes if isinstance(each, Booted)]
    assert len(set(servers)) == 3
    cloud.reread()
    cloud.judge()
