"""A service records its decisions, and the program replays them from the files."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from innkeeper.main import main
from innkeeper.scheduling import recordings
from tests.support.running import Running, running

BOUNDLESS = {"quota_instances": -1, "quota_ram": -1, "quota_cores": -1}
HOSTS = [
    {
        "name": f"host-{number}",
        "inventories": {
            "VCPU": {"total": 4 + number},
            "MEMORY_MB": {"total": 8192},
            "DISK_GB": {"total": 100},
        },
        "traits": ["CUSTOM_FAST"] if number % 2 else [],
    }
    for number in range(5)
]


def furnish(service: Running) -> None:
    """Make some hosts and flavors; one flavor fits nowhere."""
    agent = service.call(
        "POST", "/compute/v2.1/os-agents", json={"agent": {"name": "rack", "driver": "fake"}}
    ).json()["agent"]["id"]
    path = f"/compute/v2.1/os-agents/{agent}/hosts"
    assert service.call("PUT", path, json={"hosts": HOSTS}).status_code == 200
    for name, ram in (("small", 512), ("large", 3000), ("vast", 99_999)):
        flavor = {"name": name, "id": name, "ram": ram, "vcpus": 1, "disk": 1}
        service.call("POST", "/compute/v2.1/flavors", json={"flavor": flavor})


def boot(service: Running, flavor: str, count: int = 1) -> Any:
    server = {
        "name": "web",
        "flavorRef": flavor,
        "networks": "none",
        "min_count": count,
        "max_count": count,
    }
    headers = {"openstack-api-version": "compute 2.100"}
    answer = service.call("POST", "/compute/v2.1/servers", json={"server": server}, headers=headers)
    assert answer.status_code == 202, answer.text
    return answer.json()["server"]["id"]


def files_in(data_dir: Path) -> list[Path]:
    return sorted((data_dir / "recordings").glob("*.zip"))


def test_every_recorded_decision_is_reproduced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(tmp_path, record_decisions="all", **BOUNDLESS) as service:
        furnish(service)
        requests = [("small", 1), ("large", 2), ("vast", 1), ("small", 3)] * 3
        with ThreadPoolExecutor(4) as clients:
            list(clients.map(lambda each: boot(service, *each), requests))
    # Decisions do not wait for the files, so a few files may be missing.
    files = files_in(tmp_path)
    assert files
    for each in files:
        assert main(["replay", str(each)]) == 0, capsys.readouterr().out
        assert each.stat().st_mode & 0o777 == 0o600


def test_only_failed_decisions_are_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(tmp_path, record_decisions="failed", **BOUNDLESS) as service:
        furnish(service)
        boot(service, "small")
        boot(service, "vast")
    (file,) = files_in(tmp_path)
    assert recordings.read(file.read_bytes()).spec.amounts["MEMORY_MB"] == 99_999
    assert main(["replay", str(file)]) == 0
    assert "CapacityFilter removed 5" in capsys.readouterr().out


def test_nothing_is_recorded_by_default(tmp_path: Path) -> None:
    with running(tmp_path) as service:
        furnish(service)
        boot(service, "small")
    assert files_in(tmp_path) == []


@pytest.mark.parametrize("setting", ["brief", "full"])
def test_decisions_are_kept_as_the_setting_says(tmp_path: Path, setting: str) -> None:
    with running(tmp_path, explain_decisions=setting, **BOUNDLESS) as service:
        furnish(service)
        alone = boot(service, "small")
        path = f"/compute/v2.1/servers/{alone}/os-explain"
        (one,) = service.call("GET", path).json()["explanation"]["chosen"]
        service.call("DELETE", f"/compute/v2.1/servers/{alone}")
        first = boot(service, "small", 20)
        path = f"/compute/v2.1/servers/{first}/os-explain"
        reported = service.call("GET", path).json()["explanation"]
        listed = service.call("GET", "/compute/v2.1/servers?all_tenants=1").json()["servers"]
        kept = [
            service.call("GET", f"/compute/v2.1/servers/{each['id']}/os-explain").json()
            for each in listed
            if each["id"] != alone
        ]
    (chosen,) = reported["chosen"]
    assert sum(chosen["parts"].values()) == pytest.approx(chosen["weight"])
    assert len({one["host"], *one["alternates"]}) == 3
    assert reported["wanted"] == reported["room"] == 20
    with_parts = [each for each in kept if each["explanation"]["chosen"][0]["parts"]]
    assert (len(kept), len(with_parts)) == (20, 16)
    assert ("best" in reported) == (setting == "full")
    if setting == "full":
        assert [set(each) for each in reported["best"]] == [{"host", "weight", "parts"}] * 5
        assert reported["best"][0]["weight"] == chosen["weight"]
        assert reported["decided_by"]["filters"][0] == "ForcedHostFilter"
    assert json.dumps(reported)
