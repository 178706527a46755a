"""All that a provider has may be set aside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.microversions import Edge, Version
from innkeeper.entrypoints.api.placement.versions.shapes import INVENTORIES, INVENTORY
from innkeeper.entrypoints.api.routing import Call

VERSION = Version(1, 26)
SUMMARY = "`reserved` may be as large as `total`."


def _must_have_some(
    call: Call, name: str, inventory: Mapping[str, Any], verb: str = "update"
) -> None:
    free = inventory["total"] - inventory.get("reserved", 0)
    if int(free * inventory.get("allocation_ratio", 1.0)) <= 0:
        raise Invalid(
            f"Unable to {verb} inventory for resource provider {call.params['uuid']}: Invalid "
            f"inventory for '{name}'. "
            "The reserved value is greater than or equal to total."
        )


def _check_all(call: Call) -> None:
    for name, inventory in call.body["inventories"].items():
        _must_have_some(call, name, inventory)


def _check_new(call: Call) -> None:
    _must_have_some(call, call.body["resource_class"], call.body, verb="create")


def _check_one(call: Call) -> None:
    _must_have_some(call, call.params["resource_class"], call.body)


EDGES = (
    Edge("PUT", INVENTORIES, up=_check_all),
    Edge("POST", INVENTORIES, up=_check_new),
    Edge("PUT", INVENTORY, up=_check_one),
)
