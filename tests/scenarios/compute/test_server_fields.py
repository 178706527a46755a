"""The fields of a server at each microversion that changed them, for administrators and owners."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.running import Running, running

ATTRIBUTES = "OS-EXT-SRV-ATTR:"
FIRST = frozenset(
    [
        "OS-DCF:diskConfig",
        "OS-EXT-AZ:availability_zone",
        "OS-EXT-SRV-ATTR:host",
        "OS-EXT-SRV-ATTR:hypervisor_hostname",
        "OS-EXT-SRV-ATTR:instance_name",
        "OS-EXT-STS:power_state",
        "OS-EXT-STS:task_state",
        "OS-EXT-STS:vm_state",
        "OS-SRV-USG:launched_at",
        "OS-SRV-USG:terminated_at",
        "accessIPv4",
        "accessIPv6",
        "addresses",
        "config_drive",
        "created",
        "flavor",
        "hostId",
        "id",
        "image",
        "key_name",
        "links",
        "metadata",
        "name",
        "os-extended-volumes:volumes_attached",
        "progress",
        "status",
        "tenant_id",
        "updated",
        "user_id",
    ]
)
"""The fields of 2.1."""
ADDED = {
    "2.3": {
        f"{ATTRIBUTES}{name}"
        for name in [
            "hostname",
            "kernel_id",
            "launch_index",
            "ramdisk_id",
            "reservation_id",
            "root_device_name",
            "user_data",
        ]
    },
    "2.9": {"locked"},
    "2.16": {"host_status"},
    "2.19": {"description"},
    "2.26": {"tags"},
    "2.63": {"trusted_image_certificates"},
    "2.73": {"locked_reason"},
    "2.96": {"pinned_availability_zone"},
    "2.100": {"scheduler_hints"},
}
"""Fields that each microversion added to a server, in lists and alone."""
ALONE = ("2.71", "server_groups")
ADMINISTRATORS = {"host_status"} | {
    f"{ATTRIBUTES}{name}"
    for name in [
        "host",
        "hypervisor_hostname",
        "instance_name",
        "kernel_id",
        "launch_index",
        "ramdisk_id",
        "reservation_id",
        "root_device_name",
        "user_data",
    ]
}
FLAVOR = {"vcpus", "ram", "disk", "ephemeral", "swap", "original_name", "extra_specs"}
VERSIONS = ("2.1", "2.2", *ADDED, "2.46", "2.47", "2.70", "2.71", "2.74", "2.89", "2.90", "2.97")


def number(version: str) -> int:
    """The minor version."""
    return int(version.partition(".")[2])


def expected(version: str, *, is_alone: bool, is_admin: bool) -> set[str]:
    """The fields of a server in BUILD."""
    fields = set(FIRST)
    for since, names in ADDED.items():
        if number(version) >= number(since):
            fields |= names
    if is_alone and number(version) >= number(ALONE[0]):
        fields.add(ALONE[1])
    if not is_admin:
        fields -= ADMINISTRATORS
        if number(version) < number("2.90"):
            fields.discard(f"{ATTRIBUTES}hostname")
    return fields


class Booted:
    """A service with one server of project ``red``."""

    def __init__(self, service: Running) -> None:
        self.service = service
        agent = self.ask("POST", "/os-agents", {"agent": {"name": "a", "driver": "fake"}})
        amounts = {"VCPU": 4, "MEMORY_MB": 4096, "DISK_GB": 10}
        stock = {name: {"total": total} for name, total in amounts.items()}
        hosts = {"hosts": [{"name": "left", "inventories": stock}]}
        self.ask("PUT", f"/os-agents/{agent['agent']['id']}/hosts", hosts)
        flavor = {"name": "small", "id": "small", "ram": 512, "vcpus": 1, "disk": 1}
        self.ask("POST", "/flavors", {"flavor": flavor})
        server = {"name": "web", "flavorRef": "small", "networks": "none"}
        made = self.ask("POST", "/servers", {"server": server}, token="ann:red")
        self.id = made["server"]["id"]

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        token: str = "admin:red",
        version: str = "2.100",
    ) -> Any:
        """Send a request that must succeed, and return its answer."""
        headers = {"openstack-api-version": f"compute {version}"}
        answer = self.service.call(
            method, f"/compute/v2.1{path}", token, headers=headers, json=body
        )
        assert answer.is_success, answer.text
        return answer.json()


@pytest.fixture(scope="module")
def booted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Booted]:
    """One service for all tests: they only read."""
    folder: Path = tmp_path_factory.mktemp("service")
    with running(folder) as service:
        yield Booted(service)


@pytest.mark.parametrize("token", ["admin:red", "ann:red"])
@pytest.mark.parametrize("version", VERSIONS)
def test_fields(booted: Booted, version: str, token: str) -> None:
    is_admin = token.startswith("admin")
    shown = booted.ask("GET", f"/servers/{booted.id}", token=token, version=version)["server"]
    assert set(shown) == expected(version, is_alone=True, is_admin=is_admin)
    (listed,) = booted.ask("GET", "/servers/detail", token=token, version=version)["servers"]
    assert set(listed) == expected(version, is_alone=False, is_admin=is_admin)


@pytest.mark.parametrize("version", VERSIONS)
def test_flavor_and_image(booted: Booted, version: str) -> None:
    shown = booted.ask("GET", f"/servers/{booted.id}", version=version)["server"]
    has_link = number(version) < number("2.47")
    assert set(shown["flavor"]) == ({"id", "links"} if has_link else FLAVOR)
    assert shown["image"] == ""


def test_a_list_without_details_has_three_fields(booted: Booted) -> None:
    (listed,) = booted.ask("GET", "/servers")["servers"]
    assert set(listed) == {"id", "name", "links"}
    assert [link["rel"] for link in listed["links"]] == ["self", "bookmark"]


def test_the_answer_of_an_update_has_fewer_fields_before_2_75(booted: Booted) -> None:
    path, body = f"/servers/{booted.id}", {"server": {"name": "web"}}
    whole = booted.ask("PUT", path, body)["server"]
    assert set(whole) == expected("2.100", is_alone=True, is_admin=True)
    short = booted.ask("PUT", path, body, version="2.74")["server"]
    left_out = {
        name
        for name in whole
        if name.startswith((ATTRIBUTES, "OS-EXT-STS:", "OS-SRV-USG:", "os-extended-volumes:"))
    }
    left_out |= {"OS-EXT-AZ:availability_zone", "config_drive", "host_status", "key_name"}
    left_out |= {"pinned_availability_zone", "scheduler_hints"}
    assert set(short) == set(whole) - left_out
