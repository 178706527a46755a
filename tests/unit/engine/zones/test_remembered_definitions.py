"""Definitions are cached by the objects that a request names, and the cache is bounded."""

from __future__ import annotations

from msgspec.structs import replace

from innkeeper.domain.compute import BootRequest, Definitions, Flavor
from innkeeper.domain.ids import ServerId
from innkeeper.engine.zones.remembered import REMEMBERED_MAX, RememberedDefinitions
from tests.support.clouds import NOW

FLAVOR = Flavor(id=0, flavor_id="v1", name="v1", vcpus=1, memory_mb=64, disk_gb=1)
FOUND = Definitions(FLAVOR, None, None, None)
REQUEST = BootRequest("p", "u", "req-1", "n", "v1", (ServerId("1"),), "r-1", 7, NOW)


def test_only_the_same_objects_are_remembered() -> None:
    known = RememberedDefinitions()
    known.note(REQUEST, FOUND)
    assert known.get(replace(REQUEST, user_id="other", name="more")) is FOUND
    for other in (
        replace(REQUEST, flavor_id="v2"),
        replace(REQUEST, image_id="i"),
        replace(REQUEST, key_name="k"),
    ):
        assert known.get(other) is None
    known.note(replace(REQUEST, key_name="k"), FOUND)
    assert known.get(replace(REQUEST, key_name="k")) is FOUND
    assert known.get(replace(REQUEST, key_name="k", user_id="other")) is None


def test_the_first_are_forgotten() -> None:
    known = RememberedDefinitions()
    for number in range(REMEMBERED_MAX + 1):
        known.note(replace(REQUEST, flavor_id=str(number)), FOUND)
    assert known.get(replace(REQUEST, flavor_id="0")) is None
    assert known.get(replace(REQUEST, flavor_id="1")) is FOUND
