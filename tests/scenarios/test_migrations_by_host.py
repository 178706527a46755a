"""A caller that may not see migrations' hosts cannot find migrations by host."""

from __future__ import annotations

from pathlib import Path

from tests.support.running import Running, running

NEWEST = {"openstack-api-version": "compute 2.100"}
HOSTS = ("left", "right")


def test_filters_by_host_need_the_right_to_see_hosts(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text('"os_compute_api:os-migrations:index": ""\n')
    with running(tmp_path / "data", policy_file=str(policy)) as service:
        _move(service)
        for name in ("host", "source_compute"):
            assert len(_found(service, f"{name}=elsewhere", "ann:lab")) == 1
            assert _found(service, f"{name}=elsewhere", "admin") == []
        (shown,) = _found(service, "host=left", "ann:lab")
        assert (shown["source_compute"], shown["dest_compute"]) == (None, None)
        assert len(_found(service, "source_compute=left", "admin")) == 1


def _found(service: Running, query: str, token: str) -> list[dict[str, object]]:
    path = f"/compute/v2.1/os-migrations?project_id=lab&{query}"
    answer = service.call("GET", path, token, headers=NEWEST)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, object]] = answer.json()["migrations"]
    return found


def _move(service: Running) -> None:
    compute = "/compute/v2.1"
    body = {"agent": {"name": "rack", "driver": "fake"}}
    agent = service.call("POST", f"{compute}/os-agents", json=body).json()["agent"]["id"]
    amounts = {"VCPU": {"total": 4}, "MEMORY_MB": {"total": 4096}, "DISK_GB": {"total": 100}}
    reported = [{"name": name, "inventories": amounts} for name in HOSTS]
    service.call("PUT", f"{compute}/os-agents/{agent}/hosts", json={"hosts": reported})
    flavor = {"name": "small", "id": "small", "ram": 512, "vcpus": 1, "disk": 1}
    service.call("POST", f"{compute}/flavors", json={"flavor": flavor})
    fields = {"name": "web", "flavorRef": "small", "networks": "none"}
    fields["availability_zone"] = "nova:left"
    # Only administrators name hosts. A migration belongs to the project that requested it.
    booted = service.call(
        "POST", f"{compute}/servers", "admin:lab", json={"server": fields}, headers=NEWEST
    )
    assert booted.status_code == 202, booted.text
    path = f"{compute}/os-agents/{agent}"
    work = service.call("POST", f"{path}/work", json={"wait_s": 0}).json()
    results = [{"order_id": each["id"], "ok": True} for each in work["orders"]]
    service.call("POST", f"{path}/results", json={"results": results})
    moved = service.call(
        "POST",
        f"{compute}/servers/{booted.json()['server']['id']}/action",
        "admin:lab",
        json={"migrate": None},
        headers=NEWEST,
    )
    assert moved.status_code == 202, moved.text
