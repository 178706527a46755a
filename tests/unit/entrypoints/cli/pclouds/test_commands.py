"""The commands of host flavors and pclouds, and their requests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from innkeeper.entrypoints.api.pclouds.routes import PCLOUD_ROUTES
from tests.support.commands import COMMANDS, Answer, Service, run

ROOT = Path(__file__).resolve().parents[5]
UUID = "11111111-2222-4333-8444-555555555555"
P = f"/os-pclouds/{UUID}"
PCLOUD = {"id": UUID, "name": "web", "tenants": ["mine"], "size_policy": None}
HOST = {
    **{"name": "left", "host_flavor": "big", "availability_zone": "nova", "state": "enabled"},
    **{"health": "available", "maintenance": None, "units": 2, "allocated_at": "then"},
    **{"resources": {"VCPU": {"total": 8, "capacity": 32, "used": 40}}, "over_capacity": True},
    "servers": [{"id": "some-server", "project_id": "theirs"}],
}
POOLED = {
    **{"hostname": "host-1", "availability_zone": "nova"},
    **{"service_state": "up", "service_status": "enabled"},
    **{"maintenance": None, "pcloud_id": None, "name": None, "replaced": False},
}
FLAVOR = {"id": "big", "description": "", "units": 2}
QUOTA = {"project_id": "mine", "units": 10, "in_use": 2}

OWN = (200, {"pcloud": PCLOUD})
CALLS: list[tuple[str, Sequence[Answer], tuple[str, str, Any]]] = [
    ("host flavor list", [(200, {"host_flavors": [FLAVOR]})], ("GET", "/os-host-flavors", None)),
    (
        "host flavor show big",
        [(200, {"host_flavor": FLAVOR})],
        ("GET", "/os-host-flavors/big", None),
    ),
    (
        "host flavor create big --units 2",
        [(201, {"host_flavor": {**FLAVOR, "free": {"nova": 1}}})],
        ("POST", "/os-host-flavors", {"host_flavor": {"id": "big", "units": 2}}),
    ),
    (
        "host flavor set big --units 0 --description none",
        [(200, {"host_flavor": FLAVOR})],
        ("PUT", "/os-host-flavors/big", {"host_flavor": {"units": 0, "description": "none"}}),
    ),
    ("host flavor delete big", [(204, None)], ("DELETE", "/os-host-flavors/big", None)),
    (
        "host flavor host list big",
        [(200, {"hosts": [POOLED]})],
        ("GET", "/os-host-flavors/big/hosts", None),
    ),
    (
        "host flavor host show big host-1",
        [(200, {"host": POOLED})],
        ("GET", "/os-host-flavors/big/hosts/host-1", None),
    ),
    (
        "host flavor host add big host-1",
        [(201, {"host": POOLED})],
        ("POST", "/os-host-flavors/big/hosts", {"host": {"hostname": "host-1"}}),
    ),
    (
        "host flavor host remove big host-1",
        [(204, None)],
        ("DELETE", "/os-host-flavors/big/hosts/host-1", None),
    ),
    (
        "host flavor host set big host-1 --maintenance fans",
        [(200, {"host": POOLED})],
        ("PUT", "/os-host-flavors/big/hosts/host-1", {"host": {"maintenance": "fans"}}),
    ),
    (
        "host flavor host set big host-1 --no-maintenance",
        [(200, {"host": POOLED})],
        ("PUT", "/os-host-flavors/big/hosts/host-1", {"host": {"maintenance": None}}),
    ),
    (
        "pcloud list --name web --project lab --all-projects",
        [(200, {"pclouds": [PCLOUD]})],
        ("GET", "/os-pclouds?name=web&project_id=id-of-lab&all_projects=true", None),
    ),
    (f"pcloud show {UUID}", [OWN], ("GET", P, None)),
    (
        "pcloud create web --no-cpu-ratio --ram-ratio 1.5 --no-auto-placement",
        [(201, {"pcloud": PCLOUD})],
        (
            "POST",
            "/os-pclouds",
            {
                "pcloud": {
                    "name": "web",
                    "cpu_allocation_ratio": None,
                    "ram_allocation_ratio": 1.5,
                    "auto_placement": False,
                }
            },
        ),
    ),
    (
        f"pcloud set {UUID} --no-size-policy --max-hosts 3 --size-host-flavor big",
        [OWN],
        ("PUT", P, {"pcloud": {"size_policy": {"max_hosts": 3, "host_flavor": "big"}}}),
    ),
    (f"pcloud delete {UUID}", [OWN, (204, None)], ("DELETE", P, None)),
    (
        f"pcloud project list {UUID}",
        [OWN, (200, {"tenants": ["mine"]})],
        ("GET", f"{P}/tenants", None),
    ),
    (f"pcloud project add {UUID} lab", [OWN, (204, None)], ("PUT", f"{P}/tenants/id-of-lab", None)),
    (
        f"pcloud project remove {UUID} lab",
        [OWN, (204, None)],
        ("DELETE", f"{P}/tenants/id-of-lab", None),
    ),
    (
        f"pcloud accept {UUID}",
        [OWN, (204, None)],
        ("PUT", f"{P}/tenants/mine/auto_placement", None),
    ),
    (
        f"pcloud decline {UUID}",
        [OWN, (204, None)],
        ("DELETE", f"{P}/tenants/mine/auto_placement", None),
    ),
    (
        f"pcloud action list {UUID} --limit 2",
        [OWN, (200, {"actions": []})],
        ("GET", f"{P}/actions?limit=2", None),
    ),
    (f"pcloud host list {UUID}", [OWN, (200, {"hosts": [HOST]})], ("GET", f"{P}/hosts", None)),
    (
        f"pcloud host show {UUID} left",
        [OWN, (200, {"host": HOST})],
        ("GET", f"{P}/hosts/left", None),
    ),
    (
        f"pcloud host add {UUID} left --host-flavor big --availability-zone west",
        [OWN, (201, {"host": HOST})],
        (
            "POST",
            f"{P}/hosts",
            {"host": {"name": "left", "host_flavor": "big", "availability_zone": "west"}},
        ),
    ),
    (
        f"pcloud host add {UUID} left up --host-flavor big --enable --client-token once",
        [OWN, (201, {"hosts": [HOST, HOST], "failures": []})],
        (
            "POST",
            f"{P}/hosts",
            {
                "hosts": [
                    {"name": "left", "host_flavor": "big", "state": "enabled"},
                    {"name": "up", "host_flavor": "big", "state": "enabled"},
                ],
                "client_token": "once",
            },
        ),
    ),
    (
        f"pcloud host set {UUID} left --disable --name right",
        [OWN, (200, {"host": HOST})],
        ("PUT", f"{P}/hosts/left", {"host": {"name": "right", "state": "disabled"}}),
    ),
    (f"pcloud host remove {UUID} left", [OWN, (204, None)], ("DELETE", f"{P}/hosts/left", None)),
    (
        f"pcloud host replace {UUID} left",
        [OWN, (200, {"host": HOST})],
        ("POST", f"{P}/hosts/left/action", {"replace": {}}),
    ),
    (
        "pcloud usage show --end 2030-01-01",
        [(200, {"pcloud_usages": []})],
        ("GET", "/os-pcloud-usage?start=1970-01-01&end=2030-01-01", None),
    ),
    (
        "pcloud quota show",
        [(200, {"pcloud_quota": QUOTA})],
        ("GET", "/os-pcloud-quotas/mine", None),
    ),
    (
        "pcloud quota set lab --units -1",
        [(200, {"pcloud_quota": QUOTA})],
        ("PUT", "/os-pcloud-quotas/id-of-lab", {"pcloud_quota": {"units": -1}}),
    ),
    ("pcloud quota reset lab", [(204, None)], ("DELETE", "/os-pcloud-quotas/id-of-lab", None)),
]


@pytest.mark.parametrize(("words", "answers", "asked"), CALLS, ids=[e[0] for e in CALLS])
def test_a_command_sends_its_request(
    words: str, answers: Sequence[Answer], asked: tuple[str, str, Any]
) -> None:
    service = Service(*answers)
    run(words, service)
    assert service.asked[-1] == asked


def test_every_route_has_a_command() -> None:
    asked = {(method, url.partition("?")[0]) for _, _, (method, url, _) in CALLS}

    def is_requested(method: str, path: str) -> bool:
        form = re.compile("/v2.1" + re.sub(r"\{\w+\}", "[^/]+", path.removeprefix("/v2.1")))
        return any(method == m and form.fullmatch(f"/v2.1{url}") for m, url in asked)

    assert [e for e in PCLOUD_ROUTES if not is_requested(e.method, e.path)] == []


def test_every_command_is_tested_and_documented() -> None:
    page = (ROOT / "docs" / "reference" / "pcloud-commands.md").read_text(encoding="utf-8")
    assert COMMANDS
    for name in COMMANDS:
        assert any(words.startswith(name) for words, _, _ in CALLS), name
        assert f"| `{name}" in page, name
