"""The rule of every filter and weigher, for one host in plain Python.

The rules are references for the column implementations. They are slow, but easy to read.
"""

from __future__ import annotations

import ipaddress
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from innkeeper.domain.placing import Comparison, RequestSpec
from innkeeper.snapshot.dedications import FREEPOOL, of_reservation
from tests.support.plain_hosts import PCLOUDS, Metadata, PlainCloud, PlainHost, fact, is_number
from tests.support.plain_queries import satisfies
from tests.support.tables import ANY_AMOUNT


def as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
}


def meets(value: Any, comparison: Comparison) -> bool:
    """Whether one value meets an extra spec; supports only the operators that are drawn."""
    first, *_ = comparison.operands
    if value is None:
        return False
    if comparison.operator in SIGNS:
        return is_number(value) and SIGNS[comparison.operator](value, float(first))
    if comparison.operator == "<or>":
        return as_text(value) in comparison.operands
    if comparison.operator == "<in>":
        return first in (value if isinstance(value, list) else as_text(value))
    assert comparison.operator == "plain"
    return as_text(value) == first


def values(said: Sequence[Metadata], matches: Callable[[str], bool]) -> set[str]:
    found: set[str] = set()
    for each in said:
        for key, text in each.items():
            if matches(key):
                found |= {part.strip() for part in text.split(",")}
    return found


# -- filters ---------------------------------------------------------------------------------

Rule = Callable[[PlainHost, RequestSpec, PlainCloud], bool]


def is_alive(host: PlainHost, spec: RequestSpec, cloud: PlainCloud) -> bool:
    return host.sketch.is_open and spec.now_s - host.sketch.heard_s <= spec.silence_max_s


def has_room(host: PlainHost, spec: RequestSpec, cloud: PlainCloud) -> bool:
    for name, amount in spec.amounts.items():
        least, most, step = host.sketch.units.get(name, ANY_AMOUNT)
        if not least <= amount <= most or (amount != least and amount % step):
            return False
        if host.sketch.free.get(name, 0) < amount:
            return False
    return True


def is_capable(host: PlainHost, spec: RequestSpec, cloud: PlainCloud) -> bool:
    traits = set(host.sketch.traits)
    if not spec.required_traits <= traits or spec.forbidden_traits & traits:
        return False
    return all(meets(fact(host, spec, each.name), each) for each in spec.comparisons)


def suits_flavor(host: PlainHost, spec: RequestSpec, cloud: PlainCloud) -> bool:
    for name in ("MEMORY_MB", "DISK_GB"):
        if host.sketch.free.get(name, 0) < spec.amounts.get(name, 0):
            return False
    for key, text in spec.flavor_specs:
        if key.startswith("capabilities:") or ":" not in key:
            name = key.removeprefix("capabilities:").replace(":", ".")
            value = fact(host, spec, name)
            if value is None or as_text(value) != text:
                return False
    return True


PARTS = {
    "hw_architecture": ("cpu_arch", 0),
    "img_hv_type": ("hypervisor_type", 1),
    "hw_vm_mode": ("vm_mode", 2),
}


def runs_image(host: PlainHost, spec: RequestSpec, cloud: PlainCloud) -> bool:
    said = dict(spec.image_properties)
    asked = {part: said[name] for name, part in PARTS.items() if said.get(name)}
    triples = fact(host, spec, "supported_instances")
    if triples is None:
        own = all(fact(host, spec, name) == text for (name, _), text in asked.items())
    else:
        own = any(
            all(each[place] == text for (_, place), text in asked.items()) for each in triples
        )
    version = said.get("img_hv_requested_version")
    if version is None:
        return own or not asked
    assert version == ">=6"
    output = fact(host, spec, "hypervisor_version")
    return (own or not asked) and output is not None and output >= 6_000_000


def aggregates_agree(host: PlainHost, spec: RequestSpec, cloud: PlainCloud) -> bool:
    for key, text in spec.flavor_specs:
        name = key.removeprefix("aggregate_instance_extra_specs:")
        if ":" in name:
            continue
        given = values(cloud.said(host), lambda key, name=name: key == name)  # type: ignore[misc]
        if text.startswith(">= "):
            numbers = [float(each) for each in given if each.isdigit()]
            if not any(number >= float(text.removeprefix(">= ")) for number in numbers):
                return False
        elif text not in given:
            return False
    return True


def names(said: Sequence[Metadata], project_id: str) -> bool:
    return project_id in values(said, lambda key: key.startswith("filter_tenant_id"))


def is_for_project(host: PlainHost, spec: RequestSpec, cloud: PlainCloud) -> bool:
    said = cloud.said(host)
    for other in cloud.hosts:
        for each in cloud.said(other):
            if each.get("limit_tenants_to_aggregate") == "true" and names([each], spec.project_id):
                return names(said, spec.project_id)
    anybody = values(said, lambda key: key.startswith("filter_tenant_id"))
    return not anybody or spec.project_id in anybody


def is_not_kept(host: PlainHost, spec: RequestSpec, cloud: PlainCloud) -> bool:
    if not spec.rules.isolates_aggregates_by_trait:
        return True
    return all(
        key.removeprefix("trait:") in spec.required_traits
        for each in cloud.said(host)
        for key, text in each.items()
        if key.startswith("trait:") and text == "required"
    )


def takes_image(host: PlainHost, spec: RequestSpec, cloud: PlainCloud) -> bool:
    is_isolated = spec.image_id in spec.rules.isolated_images
    is_there = host.sketch.name in spec.rules.isolated_hosts
    if spec.rules.isolated_hosts_take_isolated_images_only:
        return is_isolated == is_there
    return is_there or not is_isolated


def suits_group(host: PlainHost, spec: RequestSpec, cloud: PlainCloud) -> bool:
    if spec.group is None:
        return True
    here = spec.group.members.get(host.sketch.name, 0)
    if spec.group.policy == "affinity":
        return here > 0 or not any(spec.group.members.values())
    if spec.group.policy == "anti-affinity":
        return here < spec.group.servers_per_host_max
    return True


def is_near(host: PlainHost, spec: RequestSpec, cloud: PlainCloud) -> bool:
    if spec.near is None:
        return True
    if host.address is None:
        return False
    address = ipaddress.ip_address(host.address)
    shift = address.max_prefixlen - spec.near.prefix
    is_same = address.version == spec.near.version
    return is_same and int(address) >> shift == spec.near.address >> shift


def is_dedicated_so(host: PlainHost, spec: RequestSpec, cloud: PlainCloud) -> bool:
    """Whether the host's pcloud and the requested pcloud allow the server, case by case."""
    pcloud = host.sketch.pcloud
    projects, _ = PCLOUDS.get(pcloud or "", (frozenset(), frozenset()))
    may_use = spec.project_id in projects and host.sketch.is_pcloud_open
    if not spec.pclouds:
        return (
            spec.reservation is not None
            or spec.is_preemptible
            or pcloud is None
            or (pcloud in spec.automatic_pclouds and host.sketch.is_pcloud_open)
        )
    is_named = spec.pcloud_host in (None, host.sketch.pcloud_name)
    return pcloud in spec.pclouds and may_use and is_named


def is_leased_so(host: PlainHost, spec: RequestSpec, cloud: PlainCloud) -> bool:
    """Whether the host's reservation and the requested one allow the server, case by case."""
    if spec.is_preemptible:
        reach_s = spec.rules.preemptible_reach_s or 0.0
        is_unneeded = host.sketch.needed_from_s > spec.now_s + reach_s
        return host.sketch.pcloud == FREEPOOL and host.sketch.is_pcloud_open and is_unneeded
    if spec.reservation is None:
        return True
    projects, _ = PCLOUDS.get(host.sketch.pcloud or "", (frozenset(), frozenset()))
    is_named = host.sketch.pcloud == of_reservation(spec.reservation)
    return is_named and spec.project_id in projects and host.sketch.is_pcloud_open


FILTER_RULES: dict[str, Rule] = {
    "AllHostsFilter": lambda host, spec, cloud: True,
    "ComputeFilter": is_alive,
    "AvailabilityZoneFilter": lambda host, spec, cloud: (
        spec.availability_zone in (None, host.sketch.zone)
    ),
    "ForcedHostFilter": lambda host, spec, cloud: spec.forced_host in (None, host.sketch.name),
    "PcloudFilter": is_dedicated_so,
    "LeaseFilter": is_leased_so,
    "RefusedHostsFilter": lambda host, spec, cloud: host.sketch.name not in spec.refused_hosts,
    "SameHostFilter": lambda host, spec, cloud: (
        spec.same_hosts is None or host.sketch.name in spec.same_hosts
    ),
    "DifferentHostFilter": lambda host, spec, cloud: host.sketch.name not in spec.different_hosts,
    "CapacityFilter": has_room,
    "ComputeCapabilitiesFilter": is_capable,
    "InstanceTypeFilter": suits_flavor,
    "ImagePropertiesFilter": runs_image,
    "JsonFilter": satisfies,
    "AggregateInstanceExtraSpecsFilter": aggregates_agree,
    "AggregateMultiTenancyIsolation": is_for_project,
    "IsolatedAggregatesFilter": is_not_kept,
    "IsolatedHostsFilter": takes_image,
    "ServerGroupFilter": suits_group,
    "SimpleCIDRAffinityFilter": is_near,
    "IoOpsFilter": lambda host, spec, cloud: host.busy < spec.rules.busy_servers_per_host_max,
    "VolumePoolFilter": lambda host, spec, cloud: not spec.volume_pools,
    "NumInstancesFilter": lambda host, spec, cloud: (
        sum(host.servers.values()) < spec.rules.servers_per_host_max
    ),
}


# -- weighers --------------------------------------------------------------------------------

Weight = Callable[[PlainHost, RequestSpec, PlainCloud], float]


def free(name: str) -> Weight:
    return lambda host, spec, cloud: host.sketch.free.get(name, 0)


def members(host: PlainHost, spec: RequestSpec) -> int:
    return spec.group.members.get(host.sketch.name, 0) if spec.group is not None else 0


def fullness(host: PlainHost, spec: RequestSpec, cloud: PlainCloud) -> float:
    shares = [0.0]
    for name in ("VCPU", "MEMORY_MB", "DISK_GB"):
        used = host.sketch.used.get(name, 0)
        capacity = host.sketch.free.get(name, 0) + used
        if capacity > 0:
            shares.append((used + spec.amounts.get(name, 0)) / capacity)
    return max(shares)


def leftover(host: PlainHost, spec: RequestSpec, cloud: PlainCloud) -> float:
    """Compute the weight from the largest share taken and the product of the shares left."""
    before, after = [], []
    for name in ("VCPU", "MEMORY_MB", "DISK_GB"):
        amount = spec.amounts.get(name, 0)
        left = host.sketch.free.get(name, 0)
        capacity = left + host.sketch.used.get(name, 0)
        if amount and any(name in {*e.sketch.free, *e.sketch.used} for e in cloud.hosts):
            before.append(left / capacity if capacity > 0 else 1.0)
            after.append((left - amount) / capacity if capacity > 0 else 1.0)
    return -(min(before) - min(after) + math.prod(after)) if before else 0.0


def owns(host: PlainHost) -> set[str]:
    """Return the host's traits, and the classes of its inventories."""
    sketch = host.sketch
    classes = sketch.free.keys() | sketch.used.keys()
    there = {n for n in classes if sketch.free.get(n, 0) + sketch.used.get(n, 0) > 0}
    return there | set(sketch.traits)


def waste(host: PlainHost, spec: RequestSpec, cloud: PlainCloud) -> float:
    asked = {*spec.amounts, *spec.required_traits, *spec.preferred_traits}
    if spec.has_fixed_scales:
        return -len(owns(host) - asked)
    lacking = sum(name not in owns(other) for name in owns(host) - asked for other in cloud.hosts)
    return -lacking / len(cloud.hosts)


def reported(host: PlainHost, spec: RequestSpec, cloud: PlainCloud) -> float:
    pairs = spec.rules.capability_multipliers
    found = [(fact(host, spec, name), by) for name, by in pairs]
    return math.fsum(value * by for value, by in found if is_number(value))


WEIGHER_RULES: dict[str, Weight] = {
    "FreeMemoryWeigher": free("MEMORY_MB"),
    "FreeVcpusWeigher": free("VCPU"),
    "FreeDiskWeigher": free("DISK_GB"),
    "LeastLoadedWeigher": lambda host, spec, cloud: -host.sketch.used.get("VCPU", 0),
    "FillFirstWeigher": fullness,
    "PackWeigher": leftover,
    "IoOpsWeigher": lambda host, spec, cloud: -host.busy,
    "NumInstancesWeigher": lambda host, spec, cloud: sum(host.servers.values()),
    "SoftAffinityWeigher": lambda host, spec, cloud: members(host, spec),
    "SoftAntiAffinityWeigher": lambda host, spec, cloud: -members(host, spec),
    "ProjectSpreadWeigher": lambda host, spec, cloud: -host.servers.get(spec.project_id, 0),
    "MisfitWeigher": waste,
    "TraitPreferenceWeigher": lambda host, spec, cloud: len(
        spec.preferred_traits & set(host.sketch.traits)
    ),
    "CapabilityWeigher": reported,
}
