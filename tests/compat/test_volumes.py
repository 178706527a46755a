"""The stock ``openstack`` command makes, attaches, extends, offers and deletes volumes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import openstack
import pytest
import yaml

from tests.compat.openstack_command import Started, started

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
WITHIN_S = 60.0
BLANK = "source_type=blank,destination_type=local,boot_index=0"
BOOT = ("--flavor", "small", "--nic", "none")
PAUSE_S = 0.2


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    with started(tmp_path_factory.mktemp("volumes"), "--demo-hosts", "2") as running:
        running.ask("flavor", "create", "--ram", "64", "--disk", "1", "--vcpus", "1", "small")
        yield running


def login_of(service: Started) -> dict[str, Any]:
    """The administrator's login, for the SDK."""
    clouds = yaml.safe_load(service.login_file.read_text(encoding="utf-8"))["clouds"]
    return {"load_yaml_config": False, **clouds["innkeeper"]}


def volume(service: Started, name: str, status: str) -> Any:
    """Wait for a volume's status, and show the volume."""
    deadline_s = time.monotonic() + WITHIN_S
    while (found := service.ask("volume", "show", name))["status"] != status:
        assert time.monotonic() < deadline_s, f"{name} is {found['status']}"
        time.sleep(PAUSE_S)
    return found


def names(service: Started, *words: str) -> set[str]:
    """The names of listed volumes."""
    return {each["Name"] for each in service.ask("volume", "list", *words)}


def gone(service: Started, name: str) -> None:
    """Wait until a volume is deleted."""
    deadline_s = time.monotonic() + WITHIN_S
    while name in names(service):
        assert time.monotonic() < deadline_s, f"{name} is still there"
        time.sleep(PAUSE_S)


def test_a_volume_lives(service: Started) -> None:
    made = service.ask(
        "volume", "create", "--size", "2", "--property", "a=b", "--description", "d", "disk"
    )
    assert (made["size"], made["properties"]) == (2, {"a": "b"})
    assert volume(service, "disk", "available")["id"] == made["id"]
    (held,) = service.ask("resource", "provider", "allocation", "show", made["id"])
    assert held["resources"] == {"DISK_GB": 2}
    service.do("volume", "set", "--size", "5", "disk")
    assert volume(service, "disk", "available")["size"] == 5
    service.do("volume", "set", "--property", "c=d", "--name", "drive", "disk")
    shown = service.ask("volume", "show", "drive")
    assert shown["properties"] == {"a": "b", "c": "d"}
    service.do("volume", "unset", "--property", "a", "drive")
    assert service.ask("volume", "show", "drive")["properties"] == {"c": "d"}
    service.do("volume", "set", "--bootable", "drive")
    assert service.ask("volume", "show", "drive")["bootable"] in ("true", True)
    assert "drive" in names(service)
    assert names(service, "--status", "in-use") == set()
    service.do("volume", "delete", "drive")
    gone(service, "drive")
    assert "drive" in service.refuses("volume", "show", "drive")
    assert service.ask("resource", "provider", "allocation", "show", made["id"]) == []


def test_a_volume_is_attached_and_detached(service: Started) -> None:
    server = service.ask("server", "create", *BOOT, "--block-device", BLANK, "--wait", "one")
    service.ask("volume", "create", "--size", "1", "data")
    volume(service, "data", "available")
    added = service.ask("server", "add", "volume", "one", "data")
    assert added["Device"] == "/dev/vdb"
    attached = volume(service, "data", "in-use")
    assert attached["attachments"][0]["server_id"] == server["id"]
    (line,) = service.ask("server", "volume", "list", "one")
    assert line["Volume ID"] == attached["id"]
    assert service.ask("server", "show", "one")["volumes_attached"][0]["id"] == attached["id"]
    assert "in-use" in service.refuses("volume", "delete", "data")
    service.do("server", "remove", "volume", "one", "data")
    volume(service, "data", "available")
    service.do("server", "delete", "--wait", "one")
    service.do("volume", "delete", "data")
    gone(service, "data")


def test_a_server_boots_from_a_volume_and_takes_one_with_it(service: Started) -> None:
    service.ask("volume", "create", "--size", "1", "--bootable", "root")
    root = volume(service, "root", "available")
    extra = "source_type=blank,destination_type=volume,volume_size=1,delete_on_termination=true"
    service.ask(
        "server", "create", *BOOT, "--volume", "root", "--block-device", extra, "--wait", "two"
    )
    attached = service.ask("server", "show", "two")["volumes_attached"]
    assert {each["delete_on_termination"] for each in attached} == {True, False}
    assert root["id"] in {each["id"] for each in attached}
    volume(service, "root", "in-use")
    assert len(service.ask("volume", "list")) == 2
    service.do("server", "delete", "--wait", "two")
    volume(service, "root", "available")
    deadline_s = time.monotonic() + WITHIN_S
    while len(service.ask("volume", "list")) > 1:
        assert time.monotonic() < deadline_s
        time.sleep(PAUSE_S)
    service.do("volume", "delete", "root")
    gone(service, "root")


def test_types_choose_pools_and_allow_several_servers(service: Started) -> None:
    made = service.ask("volume", "type", "create", "--property", "volume_backend_name=host-2", "t2")
    assert made["name"] == "t2"
    service.do("volume", "type", "set", "--property", "multiattach=<is> True", "t2")
    shown = service.ask("volume", "type", "show", "t2")
    assert shown["properties"]["multiattach"] == "<is> True"
    assert {each["Name"] for each in service.ask("volume", "type", "list")} >= {"t2", "__DEFAULT__"}
    service.ask("volume", "create", "--size", "1", "--type", "t2", "shared")
    found = volume(service, "shared", "available")
    assert found["os-vol-host-attr:host"].endswith("#host-2")
    for name in ("m1", "m2"):
        service.ask("server", "create", *BOOT, "--block-device", BLANK, "--wait", name)
        service.ask("server", "add", "volume", name, "shared")
        volume(service, "shared", "in-use")
    assert "still in use" in service.refuses("volume", "type", "delete", "t2")
    service.do("volume", "type", "set", "--private", "t2")
    assert service.ask("volume", "type", "show", "t2")["is_public"] is False
    service.do("volume", "type", "set", "--public", "t2")
    for name in ("m1", "m2"):
        service.do("server", "delete", "--wait", name)
    volume(service, "shared", "available")
    service.do("volume", "delete", "shared")
    gone(service, "shared")
    service.do("volume", "type", "unset", "--property", "multiattach", "t2")
    service.do("volume", "type", "delete", "t2")


def test_a_server_boots_from_a_new_volume_of_an_image(service: Started) -> None:
    image = ("--disk-format", "raw", "--container-format", "bare", "--file", "/dev/null")
    service.ask("image", "create", "cirros", *image)
    made = service.ask(
        "server", "create", *BOOT, "--image", "cirros", "--boot-from-volume", "2", "--wait", "three"
    )
    (held,) = service.ask("resource", "provider", "allocation", "show", made["id"])
    assert held["resources"] == {"VCPU": 1, "MEMORY_MB": 64}, "there is no root disk on the host"
    (line,) = service.ask("volume", "list")
    root = service.ask("volume", "show", line["ID"])
    assert (root["size"], root["status"], root["bootable"]) == (2, "in-use", True)
    assert root["volume_image_metadata"]["image_name"] == "cirros"
    service.do("server", "delete", "--wait", "three")
    volume(service, line["ID"], "available")
    service.do("volume", "delete", line["ID"])
    gone(service, "")


def test_quotas_hold(service: Started) -> None:
    service.ask("volume", "type", "create", "narrow")
    service.do("quota", "set", "--gigabytes", "1", "--volume-type", "narrow", "admin")
    narrow = ("volume", "create", "--size", "2", "--type", "narrow", "much")
    assert "gigabytes_narrow" in service.refuses(*narrow)
    service.do("quota", "set", "--volumes", "1", "--gigabytes", "3", "admin")
    limits = {each["Resource"]: each["Limit"] for each in service.ask("quota", "show", "--volume")}
    assert (limits["volumes"], limits["gigabytes"]) == (1, 3)
    assert "3G" in service.refuses("volume", "create", "--size", "4", "much")
    service.ask("volume", "create", "--size", "1", "first")
    assert "volumes allowed" in service.refuses("volume", "create", "--size", "1", "second")
    absolute = {each["Name"]: each["Value"] for each in service.ask("limits", "show", "--absolute")}
    assert absolute["total_volumes_used"] == 1
    volume(service, "first", "available")
    service.do("volume", "delete", "first")
    gone(service, "first")
    service.do("quota", "set", "--volumes", "10", "--gigabytes", "1000", "admin")


def test_transfers_pools_services_and_zones(service: Started) -> None:
    service.ask("volume", "create", "--size", "1", "gift")
    volume(service, "gift", "available")
    offer = service.ask("volume", "transfer", "request", "create", "gift")
    volume(service, "gift", "awaiting-transfer")
    assert len(service.ask("volume", "transfer", "request", "list")) == 1
    key = ("--auth-key", offer["auth_key"])
    service.ask("volume", "transfer", "request", "accept", *key, offer["id"])
    volume(service, "gift", "available")
    pools = service.ask("volume", "backend", "pool", "list")
    assert {each["Name"].partition("#")[2] for each in pools} == {"host-1", "host-2"}
    states = {each["State"] for each in service.ask("volume", "service", "list")}
    assert states == {"up"}
    zones = service.ask("availability", "zone", "list", "--volume")
    assert [each["Zone Name"] for each in zones] == ["nova"]
    assert service.ask("volume", "backend", "capability", "show", "host-1") == []
    for words in (("group", "type"), ("group", "snapshot"), ("snapshot",), ("qos",)):
        assert service.ask("volume", *words, "list") == []
    assert service.ask("consistency", "group", "list") == []
    assert service.ask("block", "storage", "cluster", "list") == []
    assert "not supported" in service.refuses(
        "volume", "snapshot", "create", "--volume", "gift", "s"
    )
    service.do("volume", "delete", "gift")
    gone(service, "gift")


def test_attachments_of_a_client_of_its_own(service: Started) -> None:
    server = service.ask("server", "create", *BOOT, "--block-device", BLANK, "--wait", "three")
    service.ask("volume", "create", "--size", "1", "own")
    volume(service, "own", "available")
    version = ("--os-volume-api-version", "3.44")
    made = service.ask(
        *version, "volume", "attachment", "create", "own", server["id"], "--connect", "--host", "h"
    )
    assert made["Status"] == "attaching"
    service.do(*version, "volume", "attachment", "complete", made["ID"])
    volume(service, "own", "in-use")
    (line,) = service.ask(*version, "volume", "attachment", "list")
    assert line["ID"] == made["ID"]
    service.do(*version, "volume", "attachment", "delete", made["ID"])
    volume(service, "own", "available")
    service.do("server", "delete", "--wait", "three")
    service.do("volume", "delete", "--force", "own")
    gone(service, "own")


@pytest.mark.filterwarnings(
    "ignore::openstack.warnings.OpenStackDeprecationWarning", "ignore::PendingDeprecationWarning"
)
def test_the_sdk_makes_attaches_and_deletes(service: Started) -> None:
    cloud: Any = openstack.connect(load_envvars=False, **login_of(service))
    made = cloud.create_volume(1, name="by-sdk", wait=True, timeout=WITHIN_S)
    assert made.status == "available"
    server = service.ask("server", "create", *BOOT, "--block-device", BLANK, "--wait", "four")
    booted = cloud.get_server_by_id(server["id"])
    cloud.attach_volume(booted, made, wait=True, timeout=WITHIN_S)
    assert cloud.get_volume(made.id).status == "in-use"
    cloud.detach_volume(cloud.get_server_by_id(server["id"]), cloud.get_volume(made.id), wait=True)
    assert [each.name for each in cloud.block_storage.volumes()] == ["by-sdk"]
    cloud.block_storage.extend_volume(made.id, 2)
    cloud.block_storage.wait_for_status(cloud.block_storage.get_volume(made.id), "available")
    assert cloud.block_storage.get_volume(made.id).size == 2
    assert cloud.block_storage.find_type("__DEFAULT__") is not None
    assert cloud.block_storage.get_limits().absolute.total_volumes_used == 1
    assert cloud.delete_volume(made.id, wait=True, timeout=WITHIN_S)
    service.do("server", "delete", "--wait", "four")
