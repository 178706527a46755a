"""A pod that does not answer delays only the first list, long before the pod counts as down."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.pod_processes import GATEWAY, Door, door
from tests.support.zone_processes import FLAVOR
from tests.support.zone_relays import Relay, relay_to

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
COMPUTE, VOLUME = "/compute/v2.1", "/volume/v3"
SERVERS, VOLUMES = f"{COMPUTE}/servers", f"{VOLUME}/volumes"
ALONE = {"build_plan_encryption_key": ""}
SETTINGS = {
    **GATEWAY,
    "pod_failures_to_offline": "100",
    # No poll is answered between two lists.
    "pod_poll_interval_s": "60",
    "pod_measure_interval_s": "3600",
}
NEWEST = {"openstack-api-version": "compute 2.100, volume 3.71"}
LISTS = (SERVERS, f"{SERVERS}/detail", VOLUMES, f"{VOLUMES}/summary")


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Door, Relay]]:
    """A door over one pod that has a server and a volume. Its APIs are behind a relay."""
    with door(tmp_path, SETTINGS) as made:
        made.ask("POST", f"{COMPUTE}/flavors", {"flavor": FLAVOR}, token="admin")
        first = made.pods.start("p1", 2, ALONE)
        with relay_to(first.address) as relay:
            addresses = {
                "compute": relay.address + COMPUTE,
                "block-storage": relay.address + VOLUME,
            }
            made.add("p1", first.address, endpoints=addresses)
            server = {"name": "s", "flavorRef": "1", "imageRef": "", "networks": "none"}
            made.ask("POST", SERVERS, {"server": server}, status=202)
            made.ask("POST", VOLUMES, {"volume": {"size": 1}}, status=202)
            yield made, relay


def partial_lists(at: Door) -> list[str]:
    """Return the paths of the lists that say that they lack rows."""
    answers = {path: at.send("GET", path, headers=NEWEST) for path in LISTS}
    assert {each.status_code for each in answers.values()} == {httpx.codes.OK}
    return [path for path, each in answers.items() if each.json().get("is_partial")]


def test_only_the_first_list_waits_for_a_silent_pod(pair: tuple[Door, Relay]) -> None:
    at, relay = pair
    assert partial_lists(at) == []
    for api in (COMPUTE, VOLUME):
        relay.answer("GET", api, b"")
    relay.requests.clear()
    assert at.ask("GET", SERVERS)["is_partial"] is True
    waited = len(relay.requests)
    assert waited > 0
    assert partial_lists(at) == list(LISTS)
    assert len(relay.requests) == waited
    assert at.pod("p1")["state"] == "up"
    relay.release()
    # A login that works ends the outage, just like a poll.
    assert at.set("p1", password="another").is_success
    assert partial_lists(at) == []
    assert len(at.ask("GET", SERVERS)["servers"]) == 1
