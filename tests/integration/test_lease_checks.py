"""The external check of leases: a real service is asked before leases are made and changed."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.lease_check_service import LeaseCheckService, serving
from tests.support.running import Running, running

LEASES = "/reservation/v1/leases"
DENIED = "External service enforcement filter denied the request."
SILENT = f"{DENIED} The service gave no usable answer."
INVENTORIES = {
    "VCPU": {"total": 4, "allocation_ratio": 1},
    "MEMORY_MB": {"total": 8192, "allocation_ratio": 1},
    "DISK_GB": {"total": 100},
}
HOST = {"resource_type": "physical:host", "min": 1, "max": 1}


@pytest.fixture
def check() -> Iterator[LeaseCheckService]:
    """The operator's service, which allows everything."""
    with serving() as service:
        yield service


@contextmanager
def cloud(folder: Path, url: str, **settings: Any) -> Iterator[Running]:
    """A service with two hosts in the freepool."""
    known = {"lease_check_url": url, "lease_check_token": "secret", "lease_check_timeout_s": 2.0}
    with running(folder, **{**known, **settings}) as service:
        call = service.call
        compute = {"openstack-api-version": "compute 2.100"}
        made = call(
            "POST",
            "/compute/v2.1/os-agents",
            headers=compute,
            json={"agent": {"name": "rack", "driver": "fake"}},
        ).json()
        hosts = [{"name": name, "inventories": INVENTORIES} for name in ("one", "two")]
        path = f"/compute/v2.1/os-agents/{made['agent']['id']}/hosts"
        assert call("PUT", path, headers=compute, json={"hosts": hosts}).status_code == 200
        for name in ("one", "two"):
            added = call("POST", "/reservation/v1/os-hosts", json={"name": name})
            assert added.status_code == 201
        yield service


def create(service: Running, query: str = "", **more: Any) -> Any:
    body = {"name": "x", "start_date": "now", "end_date": "2998-01-01 00:00"}
    return service.call(
        "POST", LEASES + query, "ann:lab", json={**body, "reservations": [HOST], **more}
    )


def refused(answer: Any, status: int = 400) -> str:
    assert answer.status_code == status
    return str(answer.json()["error_message"])


def count(service: Running) -> int:
    return len(service.call("GET", LEASES).json()["leases"])


def test_it_is_asked_with_the_chosen_hosts(tmp_path: Path, check: LeaseCheckService) -> None:
    with cloud(tmp_path, check.url) as service:
        made = create(service)
        assert made.status_code == 201
        ((path, token, body),) = check.asked
        assert (path, token) == ("/check/check-create", "secret")
        assert body["context"]["user_id"] == "ann"
        assert body["context"]["project_id"] == "lab"
        assert body["context"]["region_name"] == "RegionOne"
        assert body["context"]["auth_url"] == f"{service.url}/identity/v3"
        assert body["lease"]["end_date"] == "2998-01-01T00:00:00.000000"
        assert "current_lease" not in body
        ((host,),) = [each["allocations"] for each in body["lease"]["reservations"]]
        assert host["hypervisor_hostname"] in ("one", "two")
        assert host["units"] == 1
        lease = made.json()["lease"]
        changed = service.call(
            "PUT", f"{LEASES}/{lease['id']}", "ann:lab", json={"end_date": "2999-01-01 00:00"}
        )
        assert changed.status_code == 200
        path, _, body = check.asked[-1]
        assert path == "/check/check-update"
        assert body["lease"]["end_date"] == "2999-01-01T00:00:00.000000"
        assert body["current_lease"]["end_date"] == "2998-01-01T00:00:00.000000"
        assert len(body["current_lease"]["reservations"][0]["allocations"]) == 1


def test_a_denial_is_a_refusal_that_leaves_nothing(
    tmp_path: Path, check: LeaseCheckService
) -> None:
    with cloud(tmp_path, check.url) as service:
        check.denies("no more\nmoney")
        assert refused(create(service)) == "no more money"
        assert refused(create(service, "?dry_run=true")) == "no more money"
        for check.body in (b"", b"{", b"[]", b'{"message": 7}', b"\xff"):
            assert refused(create(service)) == DENIED
        check.denies("x" * 9999)
        assert refused(create(service)) == "x" * 400
        assert count(service) == 0
        check.status = 204
        check.body = b""
        lease = create(service).json()["lease"]
        check.denies("not longer")
        path = f"{LEASES}/{lease['id']}"
        longer = {"end_date": "2999-01-01 00:00"}
        assert refused(service.call("PUT", path, "ann:lab", json=longer)) == "not longer"
        assert refused(service.call("PUT", path, json={"project_id": "shop"})) == "not longer"
        present = service.call("GET", path, "ann:lab").json()["lease"]
        assert present == lease


def test_it_is_not_asked_about_what_does_not_fit(tmp_path: Path, check: LeaseCheckService) -> None:
    with cloud(tmp_path, check.url) as service:
        many = [{**HOST, "min": 3, "max": 3}]
        assert "Not enough hosts" in refused(create(service, reservations=many), 409)
        assert check.asked == []
        assert create(service, "?dry_run=true").status_code == 200
        assert check.paths == ["/check/check-create"]
        assert count(service) == 0


@pytest.mark.parametrize("status", [200, 302, 401, 404, 500])
def test_another_answer_is_none(tmp_path: Path, check: LeaseCheckService, status: int) -> None:
    check.status = status
    with cloud(tmp_path, check.url) as service:
        assert refused(create(service)) == SILENT
        assert count(service) == 0


def test_a_silent_service_is_waited_for_until_the_deadline(
    tmp_path: Path, check: LeaseCheckService
) -> None:
    check.is_silent = True
    with cloud(tmp_path, check.url, lease_check_timeout_s=0.2) as service:
        assert refused(create(service)) == SILENT
        # Other requests go on meanwhile, and afterwards.
        assert count(service) == 0


def test_without_a_service_the_settings_decide(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    (tmp_path / "closed").mkdir()
    (tmp_path / "open").mkdir()
    with cloud(tmp_path / "closed", url) as service:
        assert refused(create(service)) == SILENT
    with cloud(tmp_path / "open", url, lease_check_fails_open=True) as service:
        assert create(service).status_code == 201
