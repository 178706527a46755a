"""The guide's example of an operator's own resource type, over HTTP."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from osc_lib.exceptions import CommandError

from innkeeper.entrypoints.cli.leases.availability import ListAvailability, ShowAvailability
from innkeeper.settings import SettingsError
from innkeeper.systems.leases.resource_types.catalogue import TYPES
from tests.support.running import Running, running

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "write-a-resource-type.md"
LEASES, HOSTS = "/reservation/v1/leases", "/reservation/v1/os-hosts"
ANN = "ann:lab"
LATER = {"name": "course", "start_date": "2999-01-01 00:00", "end_date": "2999-01-02 00:00"}
NOW = {**LATER, "start_date": "now"}


def block(language: str) -> str:
    """Return the guide's block of code in a language."""
    text = GUIDE.read_text(encoding="utf-8")
    found = re.search(rf"```{language}\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found.group(1)


def named() -> list[str]:
    """Return the types that the guide's settings name."""
    names: list[str] = tomllib.loads(block("toml"))["lease_resource_types"]
    return names


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package that contains the example."""
    folder = tmp_path / "packages" / "ours"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "nodes.py").write_text(block("python"), encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder.parent))
    yield folder
    for each in ("ours", "ours.nodes"):
        sys.modules.pop(each, None)


def cluster(service: Running) -> None:
    """Offer three hosts, two of which belong to the cluster."""
    agent = {"agent": {"name": "rack", "driver": "fake"}}
    made = must(service, "POST", "/compute/v2.1/os-agents", agent)["agent"]["id"]
    sizes = {"VCPU": 8, "MEMORY_MB": 16384, "DISK_GB": 100}
    inventories = {name: {"total": each, "allocation_ratio": 1} for name, each in sizes.items()}
    hosts = [{"name": name, "inventories": inventories} for name in ("n1", "n2", "other")]
    must(service, "PUT", f"/compute/v2.1/os-agents/{made}/hosts", {"hosts": hosts})
    for name in ("n1", "n2"):
        must(service, "POST", HOSTS, {"name": name, "cluster": "training"})
    must(service, "POST", HOSTS, {"name": "other"})


def must(service: Running, method: str, path: str, body: Any = None, token: str = "admin") -> Any:
    answer = service.call(method, path, token, json=body)
    assert answer.is_success, answer.text
    return answer.json() if answer.content else None


def body(dates: Any, **parameters: Any) -> Any:
    return {**dates, "reservations": [{"resource_type": "ours:node", **parameters}]}


def refused(service: Running, method: str, path: str, given: Any) -> tuple[int, str]:
    """Return the status and the message of an error."""
    answer = service.call(method, path, ANN, json=given)
    assert not answer.is_success
    return answer.status_code, answer.json()["error_message"]


def test_the_example_of_the_guide(package: Path, tmp_path: Path) -> None:
    with running(tmp_path / "data", lease_resource_types=named()) as service:
        cluster(service)
        lease = must(service, "POST", LEASES, body(NOW, size="small", nodes=6), ANN)["lease"]
        (part,) = lease["reservations"]
        assert (lease["status"], part["status"]) == ("ACTIVE", "active")
        assert (part["resource_type"], part["size"], part["nodes"]) == ("ours:node", "small", 6)
        assert part["flavor_id"] == part["id"]
        flavor = must(service, "GET", f"/compute/v2.1/flavors/{part['id']}", token=ANN)["flavor"]
        assert (flavor["vcpus"], flavor["ram"], flavor["disk"]) == (2, 4096, 20)
        server = {"name": "s", "flavorRef": part["id"], "imageRef": "", "networks": "none"}
        boot = {"server": {**server, "min_count": 6, "max_count": 6}}
        headers = {"openstack-api-version": "compute 2.87"}
        answer = service.call("POST", "/compute/v2.1/servers", ANN, json=boot, headers=headers)
        assert answer.status_code == 202, answer.text
        assert servers(service) == {"n1", "n2"}
        held = must(service, "GET", f"{HOSTS}/allocations?lease_id={lease['id']}")["allocations"]
        assert len(held) == 2

        # In addition to these six, two nodes fit, but no large one.
        room = "/reservation/v1/availability?resource_type=ours:node&size=small&nodes=1"
        (interval, *_) = must(service, "GET", room, token=ANN)["availability"]["intervals"]
        assert interval["free"] == 2
        status, message = refused(service, "POST", LEASES, body(NOW, size="large", nodes=1))
        assert status == 409
        assert message.startswith("Not enough hosts available: 0 of 1 units")

        path = f"{LEASES}/{lease['id']}"
        more = {"reservations": [{"id": part["id"], "nodes": 8}]}
        assert must(service, "PUT", path, more, ANN)["lease"]["reservations"][0]["nodes"] == 8
        for change, expected in (
            ({"size": "large"}, (409, "The units of an active reservation cannot be changed.")),
            ({"nodes": 0}, (400, "Malformed parameter nodes")),
            ({"resource_type": "physical:host"}, (409, "resource_type cannot be updated")),
        ):
            given = {"reservations": [{"id": part["id"], **change}]}
            assert refused(service, "PUT", path, given) == expected
        must(service, "DELETE", path, token=ANN)


def test_commands_ask_about_the_type_as_they_reserve_it(package: Path, tmp_path: Path) -> None:
    with running(tmp_path / "data", lease_resource_types=named()) as service:
        cluster(service)
        node = "resource_type=ours:node,size=small,nodes=1"
        _, rows = command(service, ListAvailability, "--reservation", node)
        assert [each[2] for each in rows] == [8]
        hour = ("--duration-minutes", "60")
        words = ("--reservation", "size=large,nodes=2", "--resource-type", "ours:node", *hour)
        names, values = command(service, ShowAvailability, *words)
        assert dict(zip(names, values, strict=True))["amount"] == 2
        with pytest.raises(CommandError) as refusal:
            command(
                service, ListAvailability, "--reservation", "resource_type=ours:node,size=large"
            )
        assert "Missing parameter nodes (HTTP 400)" in str(refusal.value)
        # The text of a reservation of hosts, with its two numbers, works too.
        hosts = "resource_type=physical:host,min=2,max=3"
        names, values = command(service, ShowAvailability, "--reservation", hosts, *hour)
        assert dict(zip(names, values, strict=True))["amount"] == 2


def command(service: Running, kind: Any, *words: str) -> Any:
    """Run a command of the stock client's plug-in on a service, with Ann's login."""

    def request(url: str, method: str, **more: Any) -> Any:
        del more
        headers = {"x-auth-token": ANN}
        return requests.request(
            method, f"{service.url}/reservation/v1{url}", headers=headers, timeout=30
        )

    session = SimpleNamespace(request=request)
    manager = SimpleNamespace(interface="public", region_name=None, session=session)
    app = SimpleNamespace(client_manager=manager, command_manager=None)
    made = kind(app, None)
    names, values = made.take_action(made.get_parser("availability").parse_args(words))
    return names, list(values)


def servers(service: Running) -> set[str]:
    """Return the hosts of all servers."""
    found = must(service, "GET", "/compute/v2.1/servers/detail?all_tenants=1")["servers"]
    return {each["OS-EXT-SRV-ATTR:host"] for each in found}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"size": "huge", "nodes": 1}, "Malformed parameter size: one of small, large"),
        ({"size": ["small"], "nodes": 1}, "Malformed parameter size: one of small, large"),
        ({"size": "small"}, "Missing parameter nodes"),
        ({"size": "small", "nodes": True}, "Malformed parameter nodes"),
        (
            {"size": "small", "nodes": 1, "color": 1},
            "Malformed parameter color: there is no such parameter",
        ),
        ({"resource_type": "ours:nodes"}, "The ours:nodes resource type is not supported"),
    ],
)
def test_wrong_parameters(package: Path, tmp_path: Path, parameters: Any, message: str) -> None:
    with running(tmp_path / "data", lease_resource_types=named()) as service:
        cluster(service)
        assert refused(service, "POST", LEASES, body(LATER, **parameters)) == (400, message)
        assert must(service, "GET", LEASES, token=ANN)["leases"] == []


def test_a_bug_in_the_example_fails_its_requests_alone(package: Path, tmp_path: Path) -> None:
    code = block("python").replace(
        "if size not in SIZES:", 'if size == "large": size.colour\n        if size not in SIZES:'
    )
    (package / "nodes.py").write_text(code, encoding="utf-8")
    failed = "The resource type ours:node failed. The operator can find the error in the log."
    with running(tmp_path / "data", lease_resource_types=named()) as service:
        cluster(service)
        whole = {"resource_type": "physical:host", "min": 1, "max": 1}
        large = {"resource_type": "ours:node", "size": "large", "nodes": 1}
        both = {**LATER, "reservations": [whole, large]}
        assert refused(service, "POST", LEASES, both) == (503, failed)
        assert must(service, "GET", LEASES, token=ANN)["leases"] == []
        must(service, "POST", LEASES, body(LATER, size="small", nodes=1), ANN)
        room = "/reservation/v1/availability?resource_type=ours:node&size=large&nodes=1"
        assert refused(service, "GET", room, None) == (503, failed)


def test_leases_of_a_type_that_was_removed(package: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running(data, lease_resource_types=named()) as service:
        cluster(service)
        lease = must(service, "POST", LEASES, body(LATER, size="small", nodes=2), ANN)["lease"]
        active = must(service, "POST", LEASES, body(NOW, size="small", nodes=2), ANN)["lease"]
    path, part = f"{LEASES}/{lease['id']}", lease["reservations"][0]["id"]
    with running(data, lease_resource_types=list(TYPES)) as service:
        assert len(must(service, "GET", LEASES, token=ANN)["leases"]) == 2
        (shown,) = must(service, "GET", path, token=ANN)["lease"]["reservations"]
        assert (shown["resource_type"], shown["size"]) == ("ours:node", "small")
        unsupported = (400, "The ours:node resource type is not supported")
        again = body(LATER, size="small", nodes=2)
        assert refused(service, "POST", LEASES, again) == unsupported
        change = {"reservations": [{"id": part, "nodes": 3}]}
        assert refused(service, "PUT", path, change) == unsupported
        later = {"name": "renamed", "end_date": "2999-01-03 00:00"}
        assert must(service, "PUT", path, later, ANN)["lease"]["end_date"].startswith("2999-01-03")
        must(service, "PUT", path, {"reservations": [{"id": part, "remove": True}]}, ANN)
        for each in (lease, active):
            must(service, "DELETE", f"{LEASES}/{each['id']}", token=ANN)
        assert must(service, "GET", LEASES, token=ANN)["leases"] == []


def test_a_broken_type_stops_the_start(package: Path, tmp_path: Path) -> None:
    (package / "nodes.py").write_text("import nothing_like_this\n", encoding="utf-8")
    with (
        pytest.raises(SettingsError) as wrong,
        running(tmp_path / "data", lease_resource_types=named()),
    ):
        pass
    assert str(wrong.value).startswith(
        "The setting 'lease_resource_types' is wrong. The resource type 'ours.nodes:NodeType' "
        "cannot be imported (ModuleNotFoundError"
    )
