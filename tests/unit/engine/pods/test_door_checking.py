"""What a door reads of the resources in pods: their amounts, and whether they exist."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from innkeeper.clients.pods import PodAnswer, PodSilent
from innkeeper.domain.door import SERVER, VOLUME, DoorAmounts
from innkeeper.engine.pods.checking import amounts_in
from innkeeper.engine.pods.tenants import is_gone

FLAVOR = {"vcpus": 2, "ram": 512, "disk": 10, "ephemeral": 5, "swap": 1025}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"flavor": FLAVOR}, DoorAmounts(2, 512, disk_gb=17)),
        ({"status": "ACTIVE", "flavor": FLAVOR}, DoorAmounts(2, 512, disk_gb=17)),
        ({"status": "VERIFY_RESIZE", "flavor": FLAVOR}, None),
        ({"OS-EXT-STS:task_state": "resize_prep", "flavor": FLAVOR}, None),
        ({"flavor": {"id": "1"}}, None),
        ({"flavor": {**FLAVOR, "vcpus": -1}}, None),
        ({"flavor": {**FLAVOR, "ram": 1e300}}, None),
        ({"status": ["ACTIVE"], "flavor": {"id": "1"}}, None),
        ({}, None),
    ],
)
def test_a_server_counts_with_the_flavor_that_it_has_at_rest(
    told: dict[str, Any], expected: DoorAmounts | None
) -> None:
    assert amounts_in(SERVER, told) == expected


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"size": 3, "status": "in-use"}, DoorAmounts(size_gb=3)),
        ({"size": 3, "status": "extending"}, None),
        ({"size": "3"}, None),
        ({}, None),
    ],
)
def test_a_volume_counts_with_its_size(told: dict[str, Any], expected: DoorAmounts | None) -> None:
    assert amounts_in(VOLUME, told) == expected


def test_only_the_api_of_a_pod_says_that_something_is_gone() -> None:
    gone = {"itemNotFound": {"code": 404, "message": "no"}}
    assert is_gone(PodAnswer(404, {}, msgspec.json.encode(gone)))
    assert not is_gone(PodAnswer(200, {}, msgspec.json.encode(gone)))
    for body in (b"", b"{}", b"<html>", b"[]", msgspec.json.encode({"error": gone})):
        with pytest.raises(PodSilent):
            is_gone(PodAnswer(404, {}, body))
