"""Reports are split into parts that the service accepts."""

from __future__ import annotations

import msgspec

from innkeeper.entrypoints.agent.drivers.driver import HostFacts
from innkeeper.entrypoints.agent.report import BYTES_MAX, HOSTS_MAX, host_body, parts


def facts(number: int) -> HostFacts:
    return HostFacts(f"h{number}", {"VCPU": {"total": 1}})


def test_many_hosts_are_split_into_several_parts() -> None:
    hosts = [facts(number) for number in range(HOSTS_MAX + 1)]
    found = list(parts(hosts, None))
    assert [len(part) for part in found] == [HOSTS_MAX, 1]
    assert [body["name"] for part in found for body in part] == [each.name for each in hosts]


def test_a_part_stays_below_the_services_size_limit() -> None:
    hosts = [facts(number) for number in range(10)]
    servers = {each.name: ["7d9f1c34-1f0a-4a87-8f0e-6b2d54c3e210"] * 9000 for each in hosts}
    found = list(parts(hosts, servers))
    assert sum(len(part) for part in found) == 10
    assert len(found) > 1
    assert all(len(msgspec.json.encode(part)) <= BYTES_MAX + 10 for part in found)


def test_no_hosts_make_no_report() -> None:
    assert list(parts([], {})) == []


def test_unknown_facts_are_omitted() -> None:
    body = host_body(facts(1), None)
    assert not {"servers", "availability_zone", "provider_uuid", "booted_at"} & body.keys()
    assert host_body(facts(1), [])["servers"] == []
