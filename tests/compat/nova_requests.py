"""Requests for servers, as Nova's own objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nova import objects
from nova.scheduler import utils as scheduler_utils

from tests.compat.nova_cloud import PROJECT, USER, Nova, uuid


def flavor(name: str, extra: Mapping[str, str] | None = None, disk: int = 20) -> Any:
    """A flavor with two CPUs and these extra specs."""
    amounts = {"vcpus": 2, "memory_mb": 2048, "root_gb": disk, "ephemeral_gb": 0, "swap": 0}
    named = {"name": name, "flavorid": uuid(name), "is_public": True}
    return objects.Flavor(**amounts, **named, extra_specs=dict(extra or {}), id=1, rxtx_factor=1.0)


def spec(wanted: Any, server: str = "any", **more: Any) -> Any:
    """A request for one server, as nova-api passes it to nova-scheduler."""
    image = objects.ImageMeta(properties=objects.ImageMetaProps())
    unsaid = ("availability_zone", "ignore_hosts", "force_hosts", "force_nodes", "retry")
    nothing = ("limits", "instance_group", "numa_topology", "requested_destination")
    whole = {
        **dict.fromkeys((*unsaid, *nothing)),
        "flavor": wanted,
        "image": image,
        "instance_uuid": uuid(server),
        "project_id": PROJECT,
        "user_id": USER,
        "num_instances": 1,
        "is_bfv": False,
        "scheduler_hints": {},
        "pci_requests": objects.InstancePCIRequests(requests=[]),
        "requested_networks": objects.NetworkRequestList(objects=[]),
        "requested_resources": [],
        "request_level_params": objects.RequestLevelParams(),
    }
    return objects.RequestSpec(**{**whole, **more})


def candidates(
    nova: Nova, wanted: Any, in_tree: str | None = None
) -> tuple[list[Any], dict[str, Any], str]:
    """A service's candidates for a request, in an order that is the same for every service.

    ``in_tree`` is the host that an administrator has chosen.
    """
    resources = scheduler_utils.resources_from_request_spec(nova.context, wanted, None)
    if in_tree is not None:
        resources.get_request_group(None).in_tree = in_tree
    found, summaries, version = nova.client().get_allocation_candidates(nova.context, resources)
    assert found is not None, resources.to_querystring()
    return sorted(found, key=lambda one: sorted(one["allocations"])), summaries, version


def amounts(held: dict[str, Any]) -> dict[str, dict[str, int]]:
    """The allocations, without their generations."""
    return {provider: dict(one["resources"]) for provider, one in held.items()}
