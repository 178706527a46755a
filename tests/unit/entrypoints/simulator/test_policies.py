"""Policies: names of drivers, filters and weighers, and the errors for unknown names."""

from __future__ import annotations

from typing import Any

import pytest

from innkeeper.domain.errors import Invalid
from innkeeper.domain.slices import Scheduling
from innkeeper.entrypoints.simulator.policies import SchedulingPolicy, parse


def policies(*named: str, **options: str) -> tuple[SchedulingPolicy, ...]:
    wanted: dict[str, Any] = {"filters": None, "weighers": None, "driver": None}
    return parse({**wanted, **options, "policy": list(named)})


def weighers_of(policy: SchedulingPolicy) -> dict[str, float]:
    return {each.NAME: factor for each, factor in policy.scheduler().pipeline.weighers}


def test_without_a_word_it_is_what_the_service_does() -> None:
    (policy,) = policies()
    assert (policy.name, policy.settings) == ("default", Scheduling())


def test_options_alone_are_one_policy() -> None:
    (policy,) = policies(
        filters="ComputeFilter", weighers="FreeMemoryWeigher=-2,FreeVcpusWeigher", driver="chance"
    )
    assert policy.name == "weighers"
    assert policy.settings.scheduler_driver == "chance"
    assert policy.settings.default_host_filters == ("ComputeFilter",)
    (policy,) = policies(weighers="FreeMemoryWeigher=-2,FreeVcpusWeigher")
    assert weighers_of(policy) == {"FreeMemoryWeigher": -2.0, "FreeVcpusWeigher": 1.0}


def test_policies_add_to_the_options() -> None:
    spread, best, any_ = policies(
        "spread=spread",
        "best= FreeVcpusWeigher=-1 , FreeMemoryWeigher=-1 ; filters=ComputeFilter",
        "any=;driver=chance",
        filters="AvailabilityZoneFilter",
    )
    assert spread.settings.default_host_filters == ("AvailabilityZoneFilter",)
    assert set(weighers_of(spread)) >= {"FreeMemoryWeigher", "FreeVcpusWeigher"}
    assert best.settings.default_host_filters == ("ComputeFilter",)
    assert weighers_of(best) == {"FreeVcpusWeigher": -1.0, "FreeMemoryWeigher": -1.0}
    assert any_.settings.scheduler_driver == "chance"
    assert any_.settings.default_host_weighers == ()
    assert "driver chance" in any_.description()
    assert "weighers none" in any_.description()
    assert "FreeVcpusWeigher=-1" in best.description()


def test_schedulers_are_not_shared() -> None:
    (policy,) = policies()
    assert policy.scheduler() is not policy.scheduler()


@pytest.mark.parametrize(
    ("named", "options", "told"),
    [
        (["a=NoSuchWeigher"], {}, "policy a: There is no weigher 'NoSuchWeigher'. There are:"),
        ([], {"filters": "NoSuchFilter"}, "There is no host filter 'NoSuchFilter'"),
        ([], {"driver": "none"}, "There is no driver 'none'"),
        (["a"], {}, "Write a policy as NAME=WEIGHERS"),
        (["a b=spread"], {}, "Write a policy as NAME=WEIGHERS"),
        (["=spread"], {}, "Write a policy as NAME=WEIGHERS"),
        (["a=spread;colour=red"], {}, "policy a: expected driver"),
        (["a=spread;driver"], {}, "policy a: expected driver"),
        (["a=spread;driver=chance;driver=chance"], {}, "policy a: expected driver"),
        (["a=spread", "a="], {}, "Two policies have the same name: a, a"),
        (["a=spread=2"], {}, "set spread has its own multipliers"),
        (["a=FreeVcpusWeigher=x"], {}, "multiplier must be a number"),
        (["a=FreeVcpusWeigher=nan"], {}, "multiplier must be a number"),
        (["a=FreeVcpusWeigher=\u0663"], {}, "multiplier must be a number"),
        (["a=FreeVcpusWeigher=1e99"], {}, "must be a number from -1000000000 to 1000000000"),
        (["a=;driver="], {}, "The driver has no name"),
        (["a=FreeVcpusWeigher,FreeVcpusWeigher=2"], {}, "named twice"),
        ([], {"weighers": "no.such.module:thing"}, "cannot be imported"),
    ],
)
def test_what_is_no_policy(named: list[str], options: dict[str, str], told: str) -> None:
    with pytest.raises(Invalid, match=told):
        policies(*named, **options)
