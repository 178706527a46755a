"""A door keeps to its own policy rules, whatever its pods allow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.pod_processes import GATEWAY, Door, door
from tests.support.zone_processes import FLAVOR, USER

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
COMPUTE, VOLUME = "/compute/v2.1", "/volume/v3"
RULES = """
"volume:extend": "!"
"os_compute_api:servers:stop": "!"
"os_compute_api:servers:update": "!"
"""
SERVER = {"name": "s", "flavorRef": "1", "imageRef": "", "networks": "none"}


def acted(at: Door, path: str, **action: Any) -> int:
    """Carry out an action, and return the status of the answer."""
    return at.send("POST", f"{path}/action", action, token=USER).status_code


def test_actions_need_their_own_rule_and_those_of_pods_the_rule_of_updates(tmp_path: Path) -> None:
    rules = tmp_path / "policy.yaml"
    rules.write_text(RULES, encoding="utf-8")
    with door(tmp_path, {**GATEWAY, "policy_file": str(rules)}) as at:
        at.ask("POST", f"{COMPUTE}/flavors", {"flavor": FLAVOR}, token="admin")
        at.add("p1", at.pods.start("p1", 1, {"build_plan_encryption_key": ""}).address)
        made = at.ask("POST", f"{COMPUTE}/servers", {"server": SERVER}, status=202)["server"]
        server = f"{COMPUTE}/servers/{made['id']}"
        made = at.ask("POST", f"{VOLUME}/volumes", {"volume": {"size": 1}}, status=202)["volume"]
        volume = f"{VOLUME}/volumes/{made['id']}"
        for refused in ({"os-stop": None}, {"rebuild": {"imageRef": ""}}, {"rescue": None}):
            assert acted(at, server, **refused) == httpx.codes.FORBIDDEN
        assert acted(at, server, lock=None) == httpx.codes.ACCEPTED
        assert acted(at, volume, **{"os-extend": {"new_size": 2}}) == httpx.codes.FORBIDDEN
        assert acted(at, f"{VOLUME}/volumes/{server[-36:]}", nonsense=None) == httpx.codes.NOT_FOUND
        assert forced(at, volume) == httpx.codes.FORBIDDEN
        assert at.send("DELETE", volume, token=USER).status_code == httpx.codes.ACCEPTED


def forced(at: Door, volume: str) -> int:
    """Delete a volume by force, and return the status of the answer."""
    version = {"openstack-api-version": "volume 3.60"}
    return at.send("DELETE", f"{volume}?force=true", token=USER, headers=version).status_code
