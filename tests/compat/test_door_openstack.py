"""A door over OpenStack's own code: one pod consists of Keystone, Nova, Cinder and others.

The other pod is Innkeeper. Users work with the stock ``openstack`` command at the door.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
SECRET = "secret-of-ann"


@dataclass(frozen=True, slots=True)
class User:
    """A user of the door, who administers nothing."""

    door: Started
    login: Mapping[str, str]

    def ask(self, *words: str) -> Any:
        """Run a command that must succeed, and return its answer."""
        return self.door.ask(*words, login=self.login)

    def do(self, *words: str) -> str:
        """Run a command that must succeed and prints only text."""
        return self.door.do(*words, login=self.login)


@dataclass(frozen=True, slots=True)
class Behind:
    """A door and two pods; the OpenStack pod's Compute API is behind a relay."""

    door: Started
    cloud: OpenStack
    relay: Relay
    other: Started
    user: User

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
            user = User(door, door.login("ann", SECRET, "acme"))
            made = Behind(door, cloud, relay, other, user)
            through = ("--endpoint", f"compute={relay.address}/v2.1")
            add(made, folder, "nova", cloud.urls["identity"], cloud.password, *through)
            add(made, folder, "other", f"{other.url}/identity/v3", password_of(folder / "other"))
            image = ("image", "create", "--file", str(bits), "--public", "cirros")
            door.ask(*image)
            other.ask(*image)
            made.there(*image)
            door.ask("flavor", "create", "--ram", "64", "--disk", "1", "--vcpus", "1", "small")
            door.ask("project", "create", "acme")
            door.ask("user", "create", "--password", SECRET, "ann")
            door.do("role", "add", "--project", "acme", "--user", "ann", "member")
            user.ask("keypair", "create", "--public-key", str(key), "laptop")
            yield made


@pytest.fixture(autouse=True)
def in_nova(behind: Behind) -> None:
    """Move the project to the pod of OpenStack's code."""
    project = behind.door.ask("project", "show", "acme")["id"]
    behind.door.ask("pod", "binding", "create", project, "--pod", "nova")


def add(at: Behind, folder: Path, name: str, url: str, password: str, *more: str) -> None:
    """Add a pod."""
    file = folder / f"{name}.password"
    file.write_text(f"{password}\n", encoding="utf-8")
    login = ("--auth-url", url, "--password-file", str(file))
    at.door.ask("pod", "create", name, *ADDED, *login, *more)


def delete(at: Behind, *names: str) -> None:
    """Delete servers at the door, and check that no pod has a server any more."""
    at.user.do("server", "delete", "--wait", *names)
    assert at.user.ask("server", "list") == []
    everywhere = ("server", "list", "--all-projects")
    assert at.there(*everywhere) == at.other.ask(*everywhere) == []


def test_a_server_lives_in_nova(behind: Behind) -> None:
    user = behind.user
    made = user.ask(*BOOT, "--key-name", "laptop", "--property", "a=b", "--wait", "web")
    assert made["status"] == "ACTIVE", made
    assert (made["key_name"], made["properties"]) == ("laptop", {"a": "b"})
    assert made["image"].startswith("cirros")
    there = behind.there("server", "show", made["id"])
    assert there["status"] == "ACTIVE"
    assert behind.there("project", "show", there["project_id"])["name"] == made["project_id"]
    user.do("server", "lock", "web")
    assert user.ask("server", "show", "web")["locked"] is True
    user.do("server", "unlock", "web")
    user.do("server", "stop", "web")
    until("stopped", lambda: user.ask("server", "show", "web")["status"] == "SHUTOFF")
    user.do("server", "start", "web")
    until("started", lambda: behind.there("server", "show", made["id"])["status"] == "ACTIVE")
    user.do("server", "set", "--property", "c=d", "--name", "www", "web")
    shown = user.ask("server", "show", "www")
    assert shown["properties"] == {"a": "b", "c": "d"}
    user.do("server", "rebuild", "--image", "cirros", "--wait", "www")
    delete(behind, "www")


def test_servers_of_both_pods_are_in_one_list(behind: Behind) -> None:
    user = behind.user
    user.ask(*BOOT, "--min", "2", "--max", "2", "--wait", "pair")
    behind.door.do("pod", "set", "nova", "--maintenance")
    user.ask(*BOOT, "--wait", "other")
    behind.door.do("pod", "set", "nova", "--no-maintenance")
    pair = {"pair-1", "pair-2"}
    rows = user.ask("server", "list", "--long")
    assert {each["Status"] for each in rows} == {"ACTIVE"}
    assert {each["Name"] for each in rows} == {"other", *pair}
    assert user.ask("server", "list", "--long", "--image", "cirros") == rows
    first = user.ask("server", "list", "--limit", "2")
    assert first[0]["Name"] == "other"
    rest = user.ask("server", "list", "--marker", first[-1]["ID"])
    assert {first[1]["Name"], *(each["Name"] for each in rest)} == pair
    there = behind.there("server", "list", "--all-projects")
    assert {each["Name"] for each in there} == pair
    delete(behind, "other", *pair)


def test_volumes_live_in_cinder(behind: Behind) -> None:
    user = behind.user
    made = user.ask("volume", "create", "--size", "1", "data")
    until("available", lambda: user.ask("volume", "show", "data")["status"] == "available")
    assert behind.there("volume", "show", made["id"])["status"] == "available"
    disk = f"uuid={made['id']},source_type=volume,destination_type=volume,boot_index=-1"
    server = user.ask(*BOOT, "--block-device", disk, "--wait", "web")
    assert [each["id"] for each in server["volumes_attached"]] == [made["id"]]
    until("in use", lambda: user.ask("volume", "show", "data")["status"] == "in-use")
    user.do("server", "remove", "volume", "web", "data")
    until("detached", lambda: user.ask("volume", "show", "data")["status"] == "available")
    user.do("server", "add", "volume", "web", "data")
    until("attached", lambda: user.ask("volume", "show", "data")["status"] == "in-use")
    delete(behind, "web")
    until("free", lambda: user.ask("volume", "show", "data")["status"] == "available")
    user.do("volume", "set", "--size", "2", "--property", "c=d", "data")
    until("extended", lambda: user.ask("volume", "show", "data")["size"] == 2)
    assert user.ask("volume", "show", "data")["properties"] == {"c": "d"}
    assert [each["Name"] for each in user.ask("volume", "list")] == ["data"]
    user.do("volume", "delete", "data")
    until("deleted", lambda: user.ask("volume", "list") == [])
    assert behind.there("volume", "list", "--all-projects") == []


def test_a_create_whose_answer_is_lost_is_found_in_nova(behind: Behind) -> None:
    user, relay = behind.user, behind.relay
    came = relay.hold(CREATE, passes=True)
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(user.ask, *BOOT, "lost")
        assert came.wait(WITHIN_S)
        relay.release()
        made = asked.result()
    (there,) = behind.there("server", "list", "--all-projects")
    assert there["ID"] == made["id"]
    assert made["properties"] == {}
    delete(behind, "lost")


def test_the_pod_is_measured_by_its_own_statistics(behind: Behind) -> None:
    user = behind.user
    user.ask(*BOOT, "--wait", "some")
    rows = {
        each["Kind"]: each for each in behind.door.ask("pod", "usage", "show", "nova", "--measure")
    }
    assert (rows["vcpus"]["Total"], rows["vcpus"]["Used"]) == (10, 1)
    assert rows["memory_mb"]["Total"] == 8192
    delete(behind, "some")
