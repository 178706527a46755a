"""Reshapes of a host's tree that is in use, and the removal of hosts."""

from __future__ import annotations

from typing import Any

from nova import exception, objects

from tests.compat.nova_cloud import PROJECT, USER, Nova, inventory, refusal, uuid
from tests.compat.nova_requests import amounts

NUMA = ("host-1-numa-0", "host-1-numa-1")
HERE = "a-machine"


def _reshaped(nova: Nova, client: Any) -> tuple[Any, dict[str, Any]]:
    """The host's CPUs and memory in two cells, and its servers in the first of them."""
    tree = client.get_provider_tree_and_ensure_root(nova.context, uuid("host-1"), name="host-1")
    allocations = client.get_allocations_for_provider_tree(nova.context, "host-1")
    left = dict(tree.data("host-1").inventory)
    cells = {name: {**left[name]} for name in ("VCPU", "MEMORY_MB")}
    for name, amount in cells.items():
        del left[name]
        half = amount["total"] // 2
        cells[name] = {**amount, "total": half, "max_unit": half}
    for cell in NUMA:
        tree.new_child(cell, "host-1", uuid=uuid(cell))
        tree.update_inventory(cell, cells)
        tree.update_traits(cell, ["HW_NUMA_ROOT"])
    tree.update_inventory("host-1", left)
    for one in allocations.values():
        held = one["allocations"].get(uuid("host-1"))
        if held is not None:
            moved = {name: held["resources"].pop(name) for name in cells}
            one["allocations"][uuid(NUMA[0])] = {"resources": moved}
    return tree, allocations


def a_reshape(nova: Nova) -> None:
    """nova-compute moves inventories and their allocations in one step."""
    client = nova.client()
    tree, allocations = _reshaped(nova, client)
    assert set(allocations) == {uuid("server-2")}
    client.update_from_provider_tree(nova.context, tree, allocations=allocations)
    found = nova.note("reshaped", nova.look("host-1"))
    assert set(found[uuid("host-1")]["inventory"]) == {"DISK_GB", "PCPU"}
    assert found[uuid(NUMA[1])]["inventory"]["VCPU"]["total"] == 8
    assert found[uuid(NUMA[1])]["traits"] == ["HW_NUMA_ROOT"]
    held = nova.client().get_allocs_for_consumer(nova.context, uuid("server-2"))
    assert amounts(held["allocations"]) == {
        uuid("host-1"): {"DISK_GB": 20},
        uuid(NUMA[0]): {"VCPU": 2, "MEMORY_MB": 2048},
    }
    nova.note("reshaped server", held)


def reshapes_that_fail(nova: Nova) -> None:
    """A stale reshape is to be retried, and a wrong one is not; neither changes anything."""
    client = nova.client()
    tree = client.get_provider_tree_and_ensure_root(nova.context, uuid("host-1"), name="host-1")
    allocations = client.get_allocations_for_provider_tree(nova.context, "host-1")
    nova.client().aggregate_add_host(nova.context, uuid("row"), host_name="host-1")
    before = nova.look("host-1")
    tree.update_inventory("host-1", {"DISK_GB": inventory(600), "PCPU": inventory(4)})
    refusal(
        exception.PlacementReshapeConflict,
        lambda: client.update_from_provider_tree(nova.context, tree, allocations=allocations),
    )
    assert nova.look("host-1") == before
    tree = client.get_provider_tree_and_ensure_root(nova.context, uuid("host-1"), name="host-1")
    tree.update_inventory("host-1", {"PCPU": inventory(4)})
    refusal(
        exception.ReshapeFailed,
        lambda: client.update_from_provider_tree(nova.context, tree, allocations=allocations),
    )
    assert nova.look("host-1") == before
    client, tree = nova.tree("host-1")
    allocations = client.get_allocations_for_provider_tree(nova.context, "host-1")
    tree.update_inventory("host-1", {"DISK_GB": inventory(600), "PCPU": inventory(4)})
    client.update_from_provider_tree(nova.context, tree, allocations=allocations)
    found = nova.note("reshaped again", nova.look("host-1"))
    assert found[uuid("host-1")]["inventory"]["DISK_GB"]["total"] == 600


def _machine(nova: Nova, host: str, node: str) -> Any:
    """A host's row in Nova's own database."""
    nothing = dict.fromkeys(("vcpus_used", "memory_mb_used", "local_gb_used"), 0)
    amounts = {"vcpus": 16, "memory_mb": 32768, "local_gb": 500, **nothing}
    kind = {"hypervisor_type": "fake", "hypervisor_version": 1, "cpu_info": ""}
    named = {"uuid": uuid(node), "host": host, "hypervisor_hostname": node}
    row = objects.ComputeNode(nova.context, **named, **amounts, **kind)
    row.create()
    return row


def _server(nova: Nova, server: str, machine: Any) -> None:
    """A server's row in Nova's own database."""
    where = {"host": machine.host, "node": machine.hypervisor_hostname, "compute_id": machine.id}
    owner = {"project_id": PROJECT, "user_id": USER}
    objects.Instance(nova.context, uuid=uuid(server), **owner, **where).create()


def a_host_ends(nova: Nova) -> None:
    """A compute service is deleted, with the remains of evacuated servers."""
    machine = _machine(nova, HERE, "host-1")
    client = nova.client()
    # A provider in use cannot be deleted, nor its ancestors.
    client.delete_resource_provider(nova.context, machine, cascade=True)
    assert set(nova.look("host-1")) == {uuid("host-1"), uuid(NUMA[0])}
    assert client.delete_allocation_for_instance(nova.context, uuid("server-2"))
    client = nova.client()
    client.delete_resource_provider(nova.context, machine, cascade=True)
    refusal(
        exception.ResourceProviderNotFound,
        lambda: client.get_provider_by_name(nova.context, "host-1"),
    )
    assert client.get_providers_in_tree(nova.context, uuid("host-1")) == []
    held = client.get_allocs_for_consumer(nova.context, uuid("server-2"))
    assert nova.note("a host is gone", held) == {"allocations": {}}

    # A server was evacuated, and its old host never returned: its allocations there are removed.
    another = _machine(nova, "another-machine", "host-2")
    _server(nova, "server-1", _machine(nova, "elsewhere", "host-5"))
    objects.Migration(
        nova.context,
        uuid=uuid("evacuation-1"),
        instance_uuid=uuid("server-1"),
        source_compute=another.host,
        migration_type="evacuation",
        status="done",
    ).create()
    client = nova.client()
    client.delete_resource_provider(nova.context, another, cascade=True)
    assert client.get_providers_in_tree(nova.context, uuid("host-2")) == []
    left = client.get_usages_counts_for_limits(nova.context, PROJECT)
    assert nova.note("nothing is held", left) == {}


SCENES = (a_reshape, reshapes_that_fail, a_host_ends)
