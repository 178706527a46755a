"""The stock ``openstack`` command boots, lists, shows, changes and deletes servers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.compat.openstack_command import Started, started

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

# The stock client requires a boot disk; without an image it is a blank one.
BLANK = "source_type=blank,destination_type=local,boot_index=0"
BOOT = ("--flavor", "small", "--block-device", BLANK, "--nic", "none")
HOSTS = 4


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    # Two processes, one of which forwards what writes to the other.
    options = ("--workers", "2", "--demo-hosts", str(HOSTS))
    with started(tmp_path_factory.mktemp("servers"), *options) as running:
        shape = ("--ram", "64", "--disk", "1", "--vcpus", "1", "--property", "hw:a=b")
        running.ask("flavor", "create", *shape, "small")
        running.do("quota", "set", "--instances", "50", "--cores", "50", "admin")
        yield running


def shown(service: Started, name: str) -> Any:
    """The command's output for one server."""
    return service.ask("server", "show", name)


def test_one_server_is_booted_and_deleted(service: Started) -> None:
    made = service.ask("server", "create", *BOOT, "--wait", "one")
    assert made["status"] == "ACTIVE"
    assert made["OS-EXT-STS:power_state"] in (1, "Running")
    assert made["OS-EXT-SRV-ATTR:host"]
    assert shown(service, "one")["id"] == made["id"]
    assert shown(service, made["id"])["name"] == "one"
    service.do("server", "delete", "--wait", "one")
    assert "one" in service.refuses("server", "show", "one")


def test_a_servers_allocations_show_in_both_apis(service: Started) -> None:
    made = service.ask("server", "create", *BOOT, "--wait", "holding")
    (held,) = service.ask("resource", "provider", "allocation", "show", made["id"])
    assert held["resources"] == {"VCPU": 1, "MEMORY_MB": 64, "DISK_GB": 1}
    provider = held["resource_provider"]
    names = {each["uuid"]: each["name"] for each in service.ask("resource", "provider", "list")}
    assert names[provider] == made["OS-EXT-SRV-ATTR:host"]
    usage = service.ask("resource", "provider", "usage", "show", provider)
    assert {each["resource_class"]: each["usage"] for each in usage} == held["resources"]
    service.do("server", "delete", "--wait", "holding")
    assert service.ask("resource", "provider", "allocation", "show", made["id"]) == []
    usage = service.ask("resource", "provider", "usage", "show", provider)
    assert {each["usage"] for each in usage} == {0}


def test_an_image_and_hints(service: Started) -> None:
    file = service.data_dir / "disk.raw"
    file.write_bytes(b"nothing to boot")
    formats = ("--disk-format", "raw", "--container-format", "bare")
    image = service.ask("image", "create", *formats, "--file", str(file), "disk")
    boot = ("--image", "disk", "--flavor", "small", "--nic", "none", "--hint", "rack=7")
    made = service.ask("server", "create", *boot, "--wait", "drawn")
    assert image["id"] in made["image"]
    assert made["scheduler_hints"] in ({"rack": "7"}, "rack='7'")
    service.do("server", "delete", "--wait", "drawn")


def test_many_at_once(service: Started) -> None:
    service.ask("server", "create", *BOOT, "--min", "5", "--max", "10", "--wait", "many")
    listed = service.ask("server", "list", "--name", "many")
    assert sorted(each["Name"] for each in listed) == sorted(f"many-{n}" for n in range(1, 11))
    long = service.ask("server", "list", "--long", "--name", "many")
    assert {each["Flavor"] for each in long} == {"small"}
    hosts = {each["Host"] for each in long}
    assert len(hosts) == HOSTS
    pages = service.ask("server", "list", "--limit", "3", "--name", "many")
    assert len(pages) == 3
    service.do("server", "delete", "--wait", *(f"many-{n}" for n in range(1, 11)))
    assert service.ask("server", "list", "--name", "many") == []


def test_metadata_and_tags_of_servers(service: Started) -> None:
    service.ask("server", "create", *BOOT, "--property", "role=web", "--wait", "labelled")
    service.do(
        "server", "set", "--property", "rack=7", "--tag", "green", "--name", "named", "labelled"
    )
    service.do("server", "set", "--description", "front door", "named")
    server = shown(service, "named")
    assert server["properties"] == {"role": "web", "rack": "7"}
    assert (server["tags"], server["description"]) == (["green"], "front door")
    assert [each["Name"] for each in service.ask("server", "list", "--tags", "green")] == ["named"]
    service.do("server", "unset", "--property", "role", "--tag", "green", "named")
    server = shown(service, "named")
    assert (server["properties"], server["tags"]) == ({"rack": "7"}, [])
    service.do("server", "lock", "--reason", "keep", "named")
    assert shown(service, "named")["locked_reason"] == "keep"
    service.do("server", "unlock", "named")
    assert not shown(service, "named")["locked"]
    assert service.ask("server", "volume", "list", "named") == []
    service.do("server", "delete", "--wait", "named")


def test_a_server_without_a_valid_host_has_a_fault(service: Started) -> None:
    service.ask("flavor", "create", "--ram", "999999999", "--disk", "1", "--vcpus", "1", "vast")
    service.do("quota", "set", "--ram", "-1", "admin")
    boot = ("--flavor", "vast", "--block-device", BLANK, "--nic", "none")
    service.ask("server", "create", *boot, "whale")
    server = shown(service, "whale")
    assert server["status"] == "ERROR"
    assert "No valid host was found." in str(server["fault"])
    assert "CapacityFilter" in str(server["fault"])
    service.do("server", "delete", "--wait", "whale")


def test_older_versions_are_supported(service: Started) -> None:
    for version in ("2.1", "2.74"):
        boot = ("--os-compute-api-version", version)
        name = f"at-{version.replace('.', '-')}"
        nic = BOOT if version != "2.1" else BOOT[:-2]
        service.ask(*boot, "server", "create", *nic, "--wait", name)
        assert service.ask(*boot, "server", "show", name)["name"] == name
        service.ask(*boot, "server", "list", "--long")
        service.do(*boot, "server", "delete", "--wait", name)
