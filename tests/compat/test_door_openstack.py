"""A door over OpenStack's own code: one pod is Keystone, Nova, Cinder and what they need.

The other pod is Innkeeper. Users work with the stock ``openstack`` command at the door.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.compat.openstack_command import Started, started
from tests.compat.test_door import ADDED, SETTINGS, WITHIN_S, until
from tests.support.openstack.cloud import OpenStack, openstack
from tests.support.pod_processes import password_of
from tests.support.zone_relays import Relay, relay_to

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
PUBLIC_KEY = (
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHUcZ7f8g6o8k7C2m4r1o0Z4vM4y8b6c2o2y3p4q5r6s me@home\n"
)
BOOT = ("server", "create", "--flavor", "small", "--nic", "none", "--image", "cirros")
CREATE = "/v2.1/servers"


@dataclass(frozen=True, slots=True)
class Behind:
    """A door, its pod of OpenStack's own code, whose Compute API is behind a relay, and another."""

    door: Started
    cloud: OpenStack
    relay: Relay
    other: Started

    def there(self, *words: str) -> Any:
        """Ask OpenStack itself, as its administrator."""
        return self.door.ask(*words, login=self.cloud.login)


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    folder = tmp_path_factory.mktemp("door")
    config, key, bits = folder / "settings.toml", folder / "key.pub", folder / "bits"
    config.write_text(SETTINGS, encoding="utf-8")
    key.write_text(PUBLIC_KEY, encoding="utf-8")
    bits.write_bytes(b"bits of a disk")
    for name in ("door", "other"):
        (folder / name).mkdir()
    with (
        openstack(folder / "openstack") as cloud,
        started(folder / "door", "--config", str(config)) as door,
        started(folder / "other", "--demo-hosts", "1") as other,
    ):
        cloud.wait_until_ready()
        with relay_to(cloud.at("nova")) as relay:
            made = Behind(door, cloud, relay, other)
            through = ("--endpoint", f"compute={relay.address}/v2.1")
            add(made, folder, "nova", cloud.urls["identity"], cloud.password, *through)
            add(made, folder, "other", f"{other.url}/identity/v3", password_of(folder / "other"))
            image = ("image", "create", "--file", str(bits), "--public", "cirros")
            door.ask(*image)
            other.ask(*image)
            made.there(*image)
            door.ask("flavor", "create", "--ram", "64", "--disk", "1", "--vcpus", "1", "small")
            door.ask("keypair", "create", "--public-key", str(key), "laptop")
            yield made


@pytest.fixture(autouse=True)
def in_nova(behind: Behind) -> None:
    """Move the project to the pod of OpenStack's code."""
    project = behind.door.ask("project", "show", "admin")["id"]
    behind.door.ask("pod", "binding", "create", project, "--pod", "nova")


def add(at: Behind, folder: Path, name: str, url: str, password: str, *more: str) -> None:
    """Add a pod."""
    file = folder / f"{name}.password"
    file.write_text(f"{password}\n", encoding="utf-8")
    login = ("--auth-url", url, "--password-file", str(file))
    at.door.ask("pod", "create", name, *ADDED, *login, *more)


def delete(at: Behind, *names: str) -> None:
    """Delete servers at the door, and look that no pod has a server any more."""
    at.door.do("server", "delete", "--wait", *names)
    assert at.door.ask("server", "list") == []
    everywhere = ("server", "list", "--all-projects")
    assert at.there(*everywhere) == at.other.ask(*everywhere) == []


def test_a_server_lives_in_nova(behind: Behind) -> None:
    door = behind.door
    made = door.ask(*BOOT, "--key-name", "laptop", "--property", "a=b", "--wait", "web")
    assert made["status"] == "ACTIVE", made
    assert (made["key_name"], made["properties"]) == ("laptop", {"a": "b"})
    assert made["image"].startswith("cirros")
    there = behind.there("server", "show", made["id"])
    assert there["status"] == "ACTIVE"
    assert behind.there("project", "show", there["project_id"])["name"] == made["project_id"]
    door.do("server", "lock", "web")
    assert door.ask("server", "show", "web")["locked"] is True
    door.do("server", "unlock", "web")
    door.do("server", "stop", "web")
    until("stopped", lambda: door.ask("server", "show", "web")["status"] == "SHUTOFF")
    door.do("server", "start", "web")
    until("started", lambda: behind.there("server", "show", made["id"])["status"] == "ACTIVE")
    door.do("server", "set", "--property", "c=d", "--name", "www", "web")
    shown = door.ask("server", "show", "www")
    assert shown["properties"] == {"a": "b", "c": "d"}
    door.do("server", "rebuild", "--image", "cirros", "--wait", "www")
    delete(behind, "www")


def test_servers_of_both_pods_are_in_one_list(behind: Behind) -> None:
    door = behind.door
    door.ask(*BOOT, "--min", "2", "--max", "2", "--wait", "pair")
    door.do("pod", "set", "nova", "--maintenance")
    door.ask(*BOOT, "--wait", "other")
    door.do("pod", "set", "nova", "--no-maintenance")
    pair = {"pair-1", "pair-2"}
    rows = door.ask("server", "list", "--long")
    assert {each["Status"] for each in rows} == {"ACTIVE"}
    assert {each["Name"] for each in rows} == {"other", *pair}
    first = door.ask("server", "list", "--limit", "2")
    assert first[0]["Name"] == "other"
    rest = door.ask("server", "list", "--marker", first[-1]["ID"])
    assert {first[1]["Name"], *(each["Name"] for each in rest)} == pair
    there = behind.there("server", "list", "--all-projects")
    assert {each["Name"] for each in there} == pair
    delete(behind, "other", *pair)


def test_volumes_live_in_cinder(behind: Behind) -> None:
    door = behind.door
    made = door.ask("volume", "create", "--size", "1", "data")
    until("available", lambda: door.ask("volume", "show", "data")["status"] == "available")
    assert behind.there("volume", "show", made["id"])["status"] == "available"
    disk = f"uuid={made['id']},source_type=volume,destination_type=volume,boot_index=-1"
    server = door.ask(*BOOT, "--block-device", disk, "--wait", "web")
    assert [each["id"] for each in server["volumes_attached"]] == [made["id"]]
    until("in use", lambda: door.ask("volume", "show", "data")["status"] == "in-use")
    door.do("server", "remove", "volume", "web", "data")
    until("detached", lambda: door.ask("volume", "show", "data")["status"] == "available")
    door.do("server", "add", "volume", "web", "data")
    until("attached", lambda: door.ask("volume", "show", "data")["status"] == "in-use")
    delete(behind, "web")
    until("free", lambda: door.ask("volume", "show", "data")["status"] == "available")
    door.do("volume", "set", "--size", "2", "--property", "c=d", "data")
    until("extended", lambda: door.ask("volume", "show", "data")["size"] == 2)
    assert door.ask("volume", "show", "data")["properties"] == {"c": "d"}
    assert [each["Name"] for each in door.ask("volume", "list")] == ["data"]
    door.do("volume", "delete", "data")
    until("deleted", lambda: door.ask("volume", "list") == [])
    assert behind.there("volume", "list", "--all-projects") == []


def test_a_create_whose_answer_is_lost_is_found_in_nova(behind: Behind) -> None:
    door, relay = behind.door, behind.relay
    came = relay.hold(CREATE, passes=True)
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(door.ask, *BOOT, "lost")
        assert came.wait(WITHIN_S)
        relay.release()
        made = asked.result()
    (there,) = behind.there("server", "list", "--all-projects")
    assert there["ID"] == made["id"]
    assert made["properties"] == {}
    delete(behind, "lost")


def test_the_pod_is_measured_by_its_own_statistics(behind: Behind) -> None:
    door = behind.door
    door.ask(*BOOT, "--wait", "some")
    rows = {each["Kind"]: each for each in door.ask("pod", "usage", "show", "nova", "--measure")}
    assert (rows["vcpus"]["Total"], rows["vcpus"]["Used"]) == (10, 1)
    assert rows["memory_mb"]["Total"] == 8192
    delete(behind, "some")
