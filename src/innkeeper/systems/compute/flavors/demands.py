"""Compute the demands on a host from a flavor's extra specs and an image's properties.

- ``trait:NAME`` is ``required``, ``forbidden`` or, unlike in Nova, ``preferred``.
- ``resources:CLASS`` overrides the flavor's own amount of the class. 0 requests no amount.
- ``capabilities:NAME`` and names without a scope are compared with the capabilities of the host.
- ``aggregate_instance_extra_specs:NAME`` is evaluated only by the filter that reads this scope.
- ``affinity_id`` has no effect. It tells clients the server group of a reservation, as in Blazar.
- Numbered groups (``resources1:CLASS``, ``trait_NET:NAME``) are not supported, so ``group_policy``
  has no effect.
- Other scopes (``hw:``, ``quota:``) are evaluated only by the drivers of agents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from innkeeper.domain.compute import Flavor
from innkeeper.domain.errors import Invalid
from innkeeper.domain.leases import reservation_of_class
from innkeeper.domain.placing import Comparison
from innkeeper.scheduling import comparisons

TRAIT = "trait:"
RESOURCES = "resources:"
GROUP_POLICY = "group_policy"
NOT_COMPARED = frozenset({GROUP_POLICY, "affinity_id"})
"""Names without a scope that are not capabilities."""
CAPABILITIES = "capabilities:"
OF_AGGREGATES = "aggregate_instance_extra_specs:"
REQUIRED, FORBIDDEN, PREFERRED = "required", "forbidden", "preferred"
VERDICTS = (REQUIRED, FORBIDDEN, PREFERRED)
_OF_A_GROUP = re.compile(r"(resources|trait)[^:]+:", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Demands:
    """The amounts that a server needs, and the traits and comparisons that a host must satisfy."""

    amounts: Mapping[str, int]
    required_traits: frozenset[str]
    forbidden_traits: frozenset[str]
    comparisons: tuple[Comparison, ...]
    preferred_traits: frozenset[str] = frozenset()


def of(flavor: Flavor, properties: Mapping[str, str]) -> Demands:
    """Return the combined demands of a flavor and of an image with these properties.

    Raises :class:`Invalid` for invalid extra specs, for a flavor and an image with conflicting
    traits, and for a flavor without resources.
    """
    amounts = {"VCPU": flavor.vcpus, "MEMORY_MB": flavor.memory_mb, "DISK_GB": flavor.all_disk_gb}
    refuse_groups(flavor.extra_specs)
    traits: dict[str, str] = {}
    compared: list[Comparison] = []
    for key, value in flavor.extra_specs.items():
        if key.startswith(TRAIT):
            traits[key.removeprefix(TRAIT)] = value
        elif key.startswith(RESOURCES):
            amounts[key.removeprefix(RESOURCES)] = _amount(key, value)
        elif key.startswith(CAPABILITIES):
            compared.append(comparisons.parse(_path(key), value))
        elif key.startswith(OF_AGGREGATES):
            # The value is checked here, because the filter could not report an error to the client.
            comparisons.parse(key, value)
        elif ":" not in key and key not in NOT_COMPARED:
            compared.append(comparisons.parse(key, value))
    for key, value in properties.items():
        if key.startswith(TRAIT):
            _merge_trait(traits, key.removeprefix(TRAIT), value)
    _refuse_odd_traits(traits)
    taken = {name: amount for name, amount in amounts.items() if amount > 0}
    if not taken:
        # A server without allocations would look like a server without a host.
        raise Invalid(f"Flavor {flavor.flavor_id} requests no resources.")
    return Demands(
        taken,
        _traits_of(traits, REQUIRED),
        _traits_of(traits, FORBIDDEN),
        tuple(compared),
        _traits_of(traits, PREFERRED),
    )


def reservations_of(demanded: Demands) -> list[str]:
    """Return the uuids of the reservations whose slots a flavor demands."""
    found = (reservation_of_class(name) for name in demanded.amounts)
    return [each for each in found if each is not None]


def _traits_of(traits: Mapping[str, str], verdict: str) -> frozenset[str]:
    return frozenset(name for name, each in traits.items() if each == verdict)


def refuse_groups(keys: Iterable[str]) -> None:
    """Raise :class:`Invalid` for the keys of numbered groups, which would have no effect."""
    for key in keys:
        if _OF_A_GROUP.match(key) is not None:
            raise Invalid(
                f"Validation failed; the extra spec '{key}' belongs to a numbered group. Numbered "
                "groups are not supported yet; 'resources:CLASS' and 'trait:NAME' are."
            )


def _path(key: str) -> str:
    # As in Nova, "capabilities:cpu_info:arch" is a nested capability.
    return key.removeprefix(CAPABILITIES).replace(":", ".")


def _amount(key: str, value: str) -> int:
    if not value.isascii() or not value.isdigit() or len(value) > len("2147483647"):
        raise Invalid(f"The extra spec {key} is not a whole number: {value!r}.")
    return int(value)


def _merge_trait(traits: dict[str, str], name: str, verdict: str) -> None:
    other = traits.setdefault(name, verdict)
    if {other, verdict} == {REQUIRED, PREFERRED}:
        # A required trait also satisfies the preference.
        traits[name] = REQUIRED
    elif other != verdict:
        raise Invalid(f"Flavor and image disagree about the trait {name}.")


def _refuse_odd_traits(traits: Mapping[str, str]) -> None:
    for name, verdict in traits.items():
        if verdict not in VERDICTS:
            raise Invalid(
                f"The trait {name} can be required, forbidden or preferred, not {verdict!r}."
            )
