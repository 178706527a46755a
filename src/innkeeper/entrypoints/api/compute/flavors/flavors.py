"""These handlers list, show, create, update and delete flavors."""

from __future__ import annotations

import re
from typing import Any

from innkeeper.domain.amounts import RATIO_MAX, UNIT_MAX
from innkeeper.domain.compute import Flavor
from innkeeper.domain.errors import Invalid
from innkeeper.domain.listing import FlavorSelection
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.compute.flavors.schemas import SORT_KEYS
from innkeeper.entrypoints.api.compute.links import links_to, next_page
from innkeeper.entrypoints.api.paging import limit_of
from innkeeper.entrypoints.api.patterns import FLAVOR_ID_PATTERN
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.flavors import flavors

SPECS_RULE = "os_compute_api:os-flavor-extra-specs:index"
TRUE_WORDS = frozenset({"1", "t", "true", "on", "y", "yes"})
FALSE_WORDS = frozenset({"0", "f", "false", "off", "n", "no"})
_ID = re.compile(FLAVOR_ID_PATTERN)
_NUMBER = re.compile(r"[0-9]{1,18}")


async def index(call: Call) -> Answer:
    """List flavors."""
    found, links = await _page(call, "flavors")
    listed = [
        {
            "id": flavor.flavor_id,
            "name": flavor.name,
            "links": links_to(call, f"flavors/{flavor.flavor_id}"),
            "description": flavor.description,
        }
        for flavor in found
    ]
    return Answer(200, {"flavors": listed, **links})


async def detail(call: Call) -> Answer:
    """List flavors with details."""
    found, links = await _page(call, "flavors/detail")
    return Answer(200, {"flavors": [shown(call, flavor) for flavor in found], **links})


async def show(call: Call) -> Answer:
    """Show a flavor."""
    flavor = await call.read(lambda tx: visible(tx, call))
    return Answer(200, {"flavor": shown(call, flavor)})


async def create(call: Call) -> Answer:
    """Create a flavor."""
    flavor = _from_body(call, call.body["flavor"])
    created = await call.write(lambda tx: flavors.create(tx, flavor, now=call.now))
    return Answer(200, {"flavor": shown(call, created)})


async def update(call: Call) -> Answer:
    """Set a flavor's description."""
    description = call.body["flavor"]["description"]
    flavor_id = call.params["flavor_id"]
    flavor = await call.write(lambda tx: flavors.describe(tx, flavor_id, description, now=call.now))
    return Answer(200, {"flavor": shown(call, flavor)})


async def delete(call: Call) -> Answer:
    """Delete a flavor."""
    flavor_id = call.params["flavor_id"]
    await call.write(lambda tx: flavors.delete(tx, flavor_id))
    return Answer(202)


def visible(tx: Tx, call: Call) -> Flavor:
    """Return the flavor in the path. Raises :class:`NotFound` if the caller may not see it."""
    context = call.context
    return flavors.get(tx, call.params["flavor_id"], context.project_id, is_admin=context.is_admin)


def shown(call: Call, flavor: Flavor) -> dict[str, Any]:
    """Return the JSON value of a flavor."""
    body: dict[str, Any] = {
        "id": flavor.flavor_id,
        "name": flavor.name,
        "ram": flavor.memory_mb,
        "disk": flavor.disk_gb,
        "swap": flavor.swap_mb,
        "OS-FLV-EXT-DATA:ephemeral": flavor.ephemeral_gb,
        "OS-FLV-DISABLED:disabled": flavor.is_disabled,
        "vcpus": flavor.vcpus,
        "os-flavor-access:is_public": flavor.is_public,
        "rxtx_factor": flavor.rxtx_factor,
        "links": links_to(call, f"flavors/{flavor.flavor_id}"),
        "description": flavor.description,
    }
    if call.allows(SPECS_RULE, project_id=call.context.project_id):
        body["extra_specs"] = dict(flavor.extra_specs)
    return body


async def _page(call: Call, path: str) -> tuple[list[Flavor], dict[str, Any]]:
    selection, is_admin = _selection(call), call.context.is_admin
    limit, marker = limit_of(call), call.last("marker")
    found = await call.read(
        lambda tx: flavors.page(tx, selection, marker, limit, is_admin=is_admin)
    )
    is_full = found and len(found) == limit
    links = {"flavors_links": next_page(call, path, found[-1].flavor_id)} if is_full else {}
    return found, links


def _selection(call: Call) -> FlavorSelection:
    is_admin = call.context.is_admin
    return FlavorSelection(
        # Only administrators may filter by is_public. Others get all flavors that they may use.
        is_public=_is_public(call.last("is_public")) if is_admin else True,
        project_id=call.context.project_id,
        memory_mb_min=_amount(call, "minRam", "min_ram"),
        disk_gb_min=_amount(call, "minDisk", "min_disk"),
        with_disabled=is_admin,
        sort_key=SORT_KEYS[call.last("sort_key") or "flavorid"],
        is_descending=call.last("sort_dir") == "desc",
    )


def _is_public(text: str | None) -> bool | None:
    if text is None:
        return True
    word = text.strip().lower()
    if word == "none":
        return None
    if word in TRUE_WORDS:
        return True
    if word in FALSE_WORDS:
        return False
    raise Invalid(f"Invalid is_public filter [{text}]")


def _amount(call: Call, name: str, shown_name: str) -> int:
    text = call.last(name)
    if text is None:
        return 0
    if _NUMBER.fullmatch(text) is None:
        raise Invalid(f"Invalid {shown_name} filter [{text}]")
    return min(int(text), UNIT_MAX)


def _from_body(call: Call, body: dict[str, Any]) -> Flavor:
    requested_id = body.get("id")
    # Flavor ids used to be integers, and some scripts still send JSON numbers.
    flavor_id = call.site.ids.uuid() if requested_id is None else str(requested_id)
    if _ID.fullmatch(flavor_id) is None:
        raise Invalid(
            "Invalid input received: flavor id can only contain letters, numbers, periods, "
            "dashes, underscores and spaces"
        )
    factor = float(body.get("rxtx_factor", 1.0))
    if not 0 < factor <= RATIO_MAX:
        raise Invalid(
            "Invalid input received: 'rxtx_factor' argument must be a float between 0 and "
            f"{RATIO_MAX:g}"
        )
    return Flavor(
        id=0,
        flavor_id=flavor_id,
        name=body["name"],
        vcpus=_count("vcpus", body["vcpus"], 1),
        memory_mb=_count("ram", body["ram"], 1),
        disk_gb=_count("disk", body["disk"], 0),
        ephemeral_gb=_count("ephemeral", body.get("OS-FLV-EXT-DATA:ephemeral", 0), 0),
        swap_mb=_count("swap", body.get("swap", 0), 0),
        rxtx_factor=factor,
        is_public=body.get("os-flavor-access:is_public", True),
        description=body.get("description"),
    )


def _count(name: str, value: int | str, minimum: int) -> int:
    # Clients may send the number as a string. The schema does not limit its value.
    number = int(value)
    if number < minimum:
        raise Invalid(f"Invalid input received: {name} must be >= {minimum}")
    if number > UNIT_MAX:
        raise Invalid(f"Invalid input received: {name} must be <= {UNIT_MAX}")
    return number
