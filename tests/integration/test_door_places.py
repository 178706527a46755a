"""The hosts, services and pools of pods, as administrators of a door see them."""

from __future__ import annotations

from pathlib import Path

import httpx

from tests.support.pod_processes import GATEWAY, door
from tests.support.zone_processes import FLAVOR

COMPUTE, VOLUME = "/compute/v2.1", "/volume/v3"


def test_lists_have_the_rows_of_all_pods_and_changes_are_refused(tmp_path: Path) -> None:
    with door(tmp_path, {**GATEWAY, "pod_failures_to_offline": "1000"}) as at:
        at.ask("POST", f"{COMPUTE}/flavors", {"flavor": FLAVOR}, token="admin")
        for name, hosts in (("p1", 1), ("p2", 2)):
            pod = at.pods.start(name, hosts, {"build_plan_encryption_key": ""})
            at.add(name, pod.address, az_name=f"az-{name}")
        for path, key, number in (
            (f"{COMPUTE}/os-hypervisors", "hypervisors", 3),
            (f"{COMPUTE}/os-hypervisors/detail?limit=1", "hypervisors", 3),
            (f"{COMPUTE}/os-services", "services", 3),
            (f"{VOLUME}/os-services?binary=cinder-scheduler", "services", 2),
        ):
            rows = at.ask("GET", path, token="admin")[key]
            assert len(rows) == number, path
            assert {each["pod_name"] for each in rows} == {"p1", "p2"}
        assert at.ask("GET", f"{VOLUME}/scheduler-stats/get_pools", token="admin")["pools"]
        old = {"openstack-api-version": "compute 2.1"}
        path = f"{COMPUTE}/os-hypervisors/statistics"
        told = at.send("GET", path, token="admin", headers=old).json()
        assert told["hypervisor_statistics"]["count"] == 3
        (row,) = [
            each
            for each in at.ask("GET", f"{COMPUTE}/os-services", token="admin")["services"]
            if each["pod_name"] == "p1"
        ]
        body = {"status": "disabled"}
        for method, path, sent in (
            ("PUT", f"{COMPUTE}/os-services/{row['id']}", body),
            ("GET", f"{COMPUTE}/os-hypervisors/{row['id']}", None),
            ("PUT", f"{VOLUME}/os-services/disable", {"host": "h", "binary": "cinder-volume"}),
        ):
            answer = at.send(method, path, sent, token="admin")
            assert answer.status_code == httpx.codes.BAD_REQUEST, answer.text
            assert "Send this request to the pod" in answer.text
        assert at.send("GET", f"{COMPUTE}/os-services").status_code == httpx.codes.FORBIDDEN
        for path in (f"{COMPUTE}/os-availability-zone", f"{VOLUME}/os-availability-zone"):
            zones = at.ask("GET", path)["availabilityZoneInfo"]
            assert {each["zoneName"] for each in zones} >= {"az-p1", "az-p2"}
        at.pods.freeze("p1")
        try:
            told = at.ask("GET", f"{COMPUTE}/os-hypervisors", token="admin")
            assert (len(told["hypervisors"]), told["missing_pods"]) == (2, ["p1"])
        finally:
            at.pods.thaw("p1")
