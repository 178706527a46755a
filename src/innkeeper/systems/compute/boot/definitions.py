"""What a boot request refers to, as this zone defines it, for zones below that may lack it.

Always true: whether the project may use these objects is checked by the plan in this zone. The
definitions of a zone parent are those of the objects that its request names, and its quotas count
at least what its servers use.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.compute import BootRequest, Definitions, Flavor
from innkeeper.domain.errors import Invalid, NotFound
from innkeeper.domain.grouping import GroupDefinition
from innkeeper.domain.ids import is_uuid
from innkeeper.domain.images import Image
from innkeeper.domain.placing import GroupPolicy
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute import images
from innkeeper.systems.compute.accounts import keypairs
from innkeeper.systems.compute.flavors import flavors
from innkeeper.systems.compute.grouping import reach

AMOUNT_MAX = 2**31 - 1
OTHERS = "The definitions are not those of the requested flavor and image."
SPECS_MAX = 128
CHARS_MAX = 255
KEY_CHARS_MAX = 16_384
COUNTED = {"resources:VCPU": "vcpus", "resources:MEMORY_MB": "memory_mb"}
"""The extra specs that replace amounts which quotas count."""


def check(definitions: Definitions, flavor_id: str, image_id: str | None) -> None:
    """Raise :class:`Invalid` for definitions of a zone parent that this zone cannot use."""
    image, keypair = definitions.image, definitions.keypair
    if (None if image is None else image.id) != image_id:
        raise Invalid(OTHERS)
    check_flavor(definitions.flavor, flavor_id)
    properties = {} if image is None else image.properties
    if len(properties) > SPECS_MAX:
        raise Invalid("The definitions have too many properties.")
    _check_texts([*properties, "" if image is None else image.name or ""], CHARS_MAX)
    keys = [] if keypair is None else [keypair.name, keypair.public_key, keypair.fingerprint]
    _check_texts([*properties.values(), *keys], KEY_CHARS_MAX)
    if definitions.group is not None:
        _check_group(definitions.group)


def check_flavor(flavor: Flavor, flavor_id: str) -> None:
    """Raise :class:`Invalid` for a flavor of a zone parent that this zone cannot use."""
    if flavor.flavor_id != flavor_id:
        raise Invalid(OTHERS)
    amounts = flavor.vcpus, flavor.memory_mb, flavor.disk_gb, flavor.ephemeral_gb, flavor.swap_mb
    if not all(0 <= each <= AMOUNT_MAX for each in amounts):
        raise Invalid("The flavor in the definitions has an impossible amount.")
    for key, name in COUNTED.items():
        amount = flavor.extra_specs.get(key, "0")
        # Another text is no amount, which the plan refuses.
        if amount.isascii() and amount.isdigit() and int(amount[:18]) > getattr(flavor, name):
            raise Invalid(f"The extra spec {key} is above the flavor's amount, which quotas count.")
    if len(flavor.extra_specs) > SPECS_MAX:
        raise Invalid("The definitions have too many extra specs.")
    _check_texts([flavor.name, *flavor.extra_specs, *flavor.extra_specs.values()], CHARS_MAX)


def _check_group(group: GroupDefinition) -> None:
    most = group.servers_per_host_max
    is_usable = is_uuid(group.key) and group.policy in GroupPolicy.ALL
    if not is_usable or not (most is None or 1 <= most <= UNIT_MAX):
        raise Invalid("The server group in the definitions is no group.")


def _check_texts(texts: Iterable[str], chars_max: int) -> None:
    if any(len(each) > chars_max or "\0" in each for each in texts):
        raise Invalid("The definitions have a text that is too long, or has a NUL character.")


def of(tx: Tx, request: BootRequest) -> Definitions:
    """Return the definitions of a request. Raises :class:`Invalid` for an unknown object."""
    group = reach.told_below(tx, request) if request.hints else None
    if request.definitions is not None:
        return replace(request.definitions, group=group)
    flavor = flavors.by_public_ids(tx, {request.flavor_id}).get(request.flavor_id)
    if flavor is None:
        raise Invalid(f"Flavor {request.flavor_id} could not be found.")
    image = None
    if request.image_id is not None:
        image = images.get_many(tx, {request.image_id}).get(request.image_id)
        if image is None:
            raise Invalid(f"Image {request.image_id} could not be found.")
    return of_found(tx, request, flavor, image, group)


def of_found(
    tx: Tx,
    request: BootRequest,
    flavor: Flavor,
    image: Image | None,
    group: GroupDefinition | None = None,
) -> Definitions:
    """Return the definitions of a request whose flavor and image were found already."""
    if request.definitions is not None:
        return replace(request.definitions, group=group)
    keypair = None
    if request.key_name is not None:
        try:
            keypair = replace(keypairs.get(tx, request.user_id, request.key_name), id=0)
        except NotFound as error:
            raise Invalid("Invalid key_name provided.") from error
    # Numbers of rows mean nothing in other zones, and are none of their business.
    return Definitions(replace(flavor, id=0), image, keypair, group)
