"""Definitions: the flavor, image, key pair and server group that a boot request refers to.

This zone sends the definitions to its child zones, because a child zone may lack these objects.

Always true: when this zone plans the boot, it checks that the project may use these objects. A zone
parent can define only the objects that its request names. Quotas count at least the amounts that a
zone parent's servers use.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.compute import BootRequest, Definitions, Flavor
from innkeeper.domain.errors import Invalid
from innkeeper.domain.grouping import GroupDefinition
from innkeeper.domain.ids import is_uuid
from innkeeper.domain.images import Image
from innkeeper.domain.placing import GroupPolicy
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.accounts import keypairs
from innkeeper.systems.compute.flavors import flavors, images
from innkeeper.systems.compute.grouping import reach

AMOUNT_MAX = 2**31 - 1
OTHERS = "The zone parent sent the definition of a flavor or image that its request does not name."
SPECS_MAX = 128
CHARS_MAX = 255
KEY_CHARS_MAX = 16_384
COUNTED = {"resources:VCPU": "vcpus", "resources:MEMORY_MB": "memory_mb"}
"""Extra specs that can override an amount of the flavor, with the name of the amount. Quotas count
the amount of the flavor, so an extra spec must not exceed this amount."""


def check(definitions: Definitions, flavor_id: str, image_id: str | None) -> None:
    """Raise :class:`Invalid` if this zone cannot use the definitions that a zone parent sent."""
    image, keypair = definitions.image, definitions.keypair
    if (None if image is None else image.id) != image_id:
        raise Invalid(OTHERS)
    check_flavor(definitions.flavor, flavor_id)
    properties = {} if image is None else image.properties
    if len(properties) > SPECS_MAX:
        raise Invalid(f"The zone parent sent an image with more than {SPECS_MAX} properties.")
    _check_texts([*properties, "" if image is None else image.name or ""], CHARS_MAX)
    keys = [] if keypair is None else [keypair.name, keypair.public_key, keypair.fingerprint]
    _check_texts([*properties.values(), *keys], KEY_CHARS_MAX)
    if definitions.group is not None:
        _check_group(definitions.group)


def check_flavor(flavor: Flavor, flavor_id: str) -> None:
    """Raise :class:`Invalid` if this zone cannot use the flavor that a zone parent sent."""
    if flavor.flavor_id != flavor_id:
        raise Invalid(OTHERS)
    amounts = flavor.vcpus, flavor.memory_mb, flavor.disk_gb, flavor.ephemeral_gb, flavor.swap_mb
    if not all(0 <= each <= AMOUNT_MAX for each in amounts):
        raise Invalid(f"The zone parent sent a flavor with an amount outside 0 to {AMOUNT_MAX}.")
    for key, name in COUNTED.items():
        amount = flavor.extra_specs.get(key, "0")
        # A value that is not a number is refused later, when the boot is planned.
        if amount.isascii() and amount.isdigit() and int(amount[:18]) > getattr(flavor, name):
            raise Invalid(f"The extra spec {key} exceeds the flavor's amount.")
    if len(flavor.extra_specs) > SPECS_MAX:
        raise Invalid(f"The zone parent sent a flavor with more than {SPECS_MAX} extra specs.")
    _check_texts([flavor.name, *flavor.extra_specs, *flavor.extra_specs.values()], CHARS_MAX)


def _check_group(group: GroupDefinition) -> None:
    most = group.servers_per_host_max
    is_usable = is_uuid(group.key) and group.policy in GroupPolicy.ALL
    if not is_usable or not (most is None or 1 <= most <= UNIT_MAX):
        raise Invalid("The zone parent sent an invalid server group.")


def _check_texts(texts: Iterable[str], chars_max: int) -> None:
    if any(len(each) > chars_max or "\0" in each for each in texts):
        raise Invalid("The zone parent sent a text that is too long or has a NUL character.")


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
    """Return the definitions of a request whose flavor and image were already found."""
    if request.definitions is not None:
        return replace(request.definitions, group=group)
    keypair = None
    if request.key_name is not None:
        keypair = replace(keypairs.for_boot(tx, request.user_id, request.key_name), id=0)
    # Row ids mean nothing in other zones, and other zones should not learn them.
    return Definitions(replace(flavor, id=0), image, keypair, group)
