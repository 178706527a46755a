"""The stock ``openstack`` command: flavors, images, keypairs, quotas, limits, usage, zones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compat.openstack_command import Started, started

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
BITS = b"bits of a disk" * 1000
PUBLIC_KEY = (
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHUcZ7f8g6o8k7C2m4r1o0Z4vM4y8b6c2o2y3p4q5r6s me@home\n"
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    with started(tmp_path_factory.mktemp("catalogue")) as running:
        yield running


def test_flavors(service: Started) -> None:
    made = service.ask(
        *("flavor", "create", "--vcpus", "2", "--ram", "1024", "--disk", "3"),
        *("--property", "hw:cpu_policy=shared", "--property", "resources:VCPU=2"),
        *("--description", "a flavor", "small"),
    )
    assert made["properties"] == {"hw:cpu_policy": "shared", "resources:VCPU": "2"}
    assert (made["vcpus"], made["ram"], made["disk"], made["swap"]) == (2, 1024, 3, 0)
    service.do("flavor", "set", "small", "--property", "trait:CUSTOM_A=required")
    service.do("flavor", "unset", "small", "--property", "hw:cpu_policy")
    shown = service.ask("flavor", "show", "small")
    assert shown["properties"] == {"resources:VCPU": "2", "trait:CUSTOM_A": "required"}
    assert shown["description"] == "a flavor"
    assert "409" in service.refuses(
        "flavor", "create", "--vcpus", "1", "--ram", "1", "--disk", "1", "small"
    )
    (listed,) = service.ask("flavor", "list", "--long")
    assert (listed["Name"], listed["Properties"]) == ("small", shown["properties"])
    service.do("flavor", "delete", "small")
    assert service.ask("flavor", "list", "--all") == []


def test_private_flavors(service: Started) -> None:
    service.ask(
        *("flavor", "create", "--private", "--vcpus", "1", "--ram", "64", "--disk", "1"), "secret"
    )
    assert service.ask("flavor", "list") == []
    assert [each["Name"] for each in service.ask("flavor", "list", "--all")] == ["secret"]
    service.do("flavor", "set", "secret", "--project", "admin")
    project = service.ask("project", "show", "admin")["id"]
    assert service.ask("flavor", "show", "secret")["access_project_ids"] == [project]
    service.do("flavor", "unset", "secret", "--project", "admin")
    assert service.ask("flavor", "show", "secret")["access_project_ids"] == []
    service.do("flavor", "delete", "secret")


def test_images(service: Started, tmp_path: Path) -> None:
    bits = tmp_path / "bits"
    bits.write_bytes(BITS)
    made = service.ask(
        *("image", "create", "--file", str(bits), "--disk-format", "raw"),
        *("--container-format", "bare", "--min-ram", "64", "--property", "os_distro=x"),
        "cirros",
    )
    assert (made["status"], made["size"], made["min_ram"]) == ("active", len(BITS), 64)
    service.do(
        *("image", "set", "cirros", "--public", "--min-disk", "3", "--name", "tall"),
        *("--property", "color=red", "--tag", "one", "--tag", "two"),
    )
    service.do("image", "set", "tall", "--tag", "three", "--protected")
    shown = service.ask("image", "show", "tall")
    assert (shown["visibility"], shown["min_disk"], shown["protected"]) == ("public", 3, True)
    assert sorted(shown["tags"]) == ["one", "three", "two"]
    assert (shown["properties"]["color"], shown["properties"]["os_distro"]) == ("red", "x")
    assert "is protected" in service.refuses("image", "delete", "tall")
    service.do("image", "unset", "tall", "--tag", "one", "--property", "color")
    service.do("image", "set", "tall", "--unprotected", "--deactivate")
    shown = service.ask("image", "show", "tall")
    assert (shown["status"], sorted(shown["tags"])) == ("deactivated", ["three", "two"])
    assert "color" not in shown["properties"]
    service.do("image", "set", "tall", "--activate")
    assert [each["Name"] for each in service.ask("image", "list", "--tag", "two")] == ["tall"]
    assert service.ask("image", "list", "--name", "short") == []
    # The content is empty: the client reports a wrong checksum.
    service.refuses("image", "save", "--file", str(tmp_path / "copy"), "tall")
    service.do("image", "delete", "tall")
    assert "No Image found" in service.refuses("image", "show", "tall")


def test_keypairs(service: Started, tmp_path: Path) -> None:
    file = tmp_path / "key.pub"
    file.write_text(PUBLIC_KEY)
    made = service.ask("keypair", "create", "--public-key", str(file), "imported")
    assert made["type"] == "ssh"
    assert "PRIVATE KEY" in service.do(
        "--os-compute-api-version", "2.91", "keypair", "create", "made"
    )
    listed = service.ask("keypair", "list")
    assert [each["Name"] for each in listed] == ["imported", "made"]
    assert service.do("keypair", "show", "--public-key", "imported").strip() == (PUBLIC_KEY.strip())
    assert service.ask("keypair", "show", "imported")["fingerprint"] == made["fingerprint"]
    service.do("keypair", "delete", "imported", "made")
    assert service.ask("keypair", "list") == []


def test_quotas_and_limits(service: Started) -> None:
    service.do("quota", "set", "--instances", "11", "--cores", "-1", "admin")
    quotas = {each["Resource"]: each["Limit"] for each in service.ask("quota", "show", "--compute")}
    assert (quotas["instances"], quotas["cores"], quotas["ram"]) == (11, -1, 51200)
    usages = {each["Resource"]: each for each in service.ask("quota", "show", "--usage")}
    assert (usages["instances"]["Limit"], usages["instances"]["In Use"]) == (11, 0)
    (listed,) = service.ask("quota", "list", "--compute")
    assert listed["Instances"] == 11
    limits = {each["Name"]: each["Value"] for each in service.ask("limits", "show", "--absolute")}
    assert (limits["max_total_instances"], limits["instances_used"]) == (11, 0)
    service.do("quota", "delete", "--compute", "admin")
    defaults = {
        each["Resource"]: each["Limit"]
        for each in service.ask("quota", "show", "--default", "--compute")
    }
    quotas = {each["Resource"]: each["Limit"] for each in service.ask("quota", "show", "--compute")}
    assert quotas["instances"] == defaults["instances"] == 10
    assert service.ask("limits", "show", "--rate") == []


def test_requests_made_along_the_way(service: Started) -> None:
    assert service.ask("usage", "show")["Servers"] == []
    assert service.ask("usage", "list") == []
    assert service.ask("availability", "zone", "list", "--compute") == []
    assert service.ask("aggregate", "list") == []
    assert service.ask("server", "group", "list") == []
    assert service.ask("extension", "list", "--compute") == []
    (compute,) = service.ask("versions", "show", "--service", "compute")
    assert (compute["Min Microversion"], compute["Max Microversion"]) == ("2.1", "2.100")
