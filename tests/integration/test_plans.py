"""Build plans over HTTP: each entry boots one server, and no answer names a host."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.support.running import Running, running

KEY = "c286696d887c9aa0611bbb3e2025a45b"
VERSIONS = {"openstack-api-version": "compute 2.100"}
NAMES = ("a-host-with-a-name", "b")
BRINGERS = 8
TOKEN = "ann:lab"


def ask(service: Running, method: str, path: str, token: str = "admin", **more: Any) -> Any:
    """Call the Compute API."""
    return service.call(method, f"/compute/v2.1{path}", token, headers=VERSIONS, **more)


def hosts_in(service: Running) -> list[str]:
    """Report two hosts, create a flavor, and return the secrets of the hosts."""
    body: dict[str, Any] = {"agent": {"name": "rack", "driver": "fake"}}
    agent = ask(service, "POST", "/os-agents", json=body).json()["agent"]["id"]
    totals = {"VCPU": {"total": 64}, "MEMORY_MB": {"total": 65536}, "DISK_GB": {"total": 999}}
    body = {"hosts": [{"name": name, "inventories": totals} for name in NAMES]}
    reported = ask(service, "PUT", f"/os-agents/{agent}/hosts", json=body).json()["hosts"]
    body = {"flavor": {"name": "v1", "id": "v1", "ram": 64, "vcpus": 1, "disk": 1}}
    assert ask(service, "POST", "/flavors", json=body).is_success
    return [NAMES[0], agent, *(each["provider_uuid"] for each in reported)]


def server(**more: Any) -> dict[str, Any]:
    """Return the body of a boot or a plan."""
    return {"server": {"name": "web", "flavorRef": "v1", "networks": "none", **more}}


def test_one_of_many_requests_with_an_entry_boots_its_server(tmp_path: Path) -> None:
    with running(tmp_path, build_plan_encryption_key=[KEY]) as service:
        secrets = hosts_in(service)
        made = ask(service, "POST", "/zones/select", TOKEN, json=server(max_count=10))
        weights = made.json()["weights"]
        assert [each["weight"] for each in weights] == sorted(each["weight"] for each in weights)
        assert len({each["blob"] for each in weights}) == len(weights)
        sealed = b"".join(base64.urlsafe_b64decode(each["blob"] + "==") for each in weights)
        for each in secrets:
            assert each not in made.text and each.encode() not in sealed
        # Each entry is sent several times at once, and boots one server.
        brought = [each["blob"] for each in weights[:3]] * BRINGERS

        def bring(entry: str) -> Any:
            return ask(service, "POST", "/servers", TOKEN, json=server(blob=entry))

        with ThreadPoolExecutor(BRINGERS) as pool:
            answers = list(pool.map(bring, brought))
        statuses = sorted(each.status_code for each in answers)
        assert statuses == [202] * 3 + [409] * (3 * BRINGERS - 3)
        listed = ask(service, "GET", "/servers/detail", TOKEN).json()["servers"]
        assert sorted(each["status"] for each in listed) == ["BUILD"] * 3
        ids = {each["id"] for each in listed}
        assert {each.json()["server"]["id"] for each in answers if each.is_success} == ids
        for entry in weights[:3]:
            reported = {bring(entry["blob"]).json()["conflictingRequest"]["message"]}
            assert any(each in next(iter(reported)) for each in ids)
