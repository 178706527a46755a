"""What nova-compute and nova-api do with providers, played with Nova's own report client.

The scenes build on each other: four hosts, two with cards, two with their disks in a pool.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from nova import exception

from tests.compat.nova_cloud import Nova, inventory, refusal, uuid, view

HOSTS = ("host-1", "host-2", "host-3", "host-4")
WITH_CARDS, WITH_POOL = HOSTS[:2], HOSTS[2:]
POOL, SHARED = "pool", uuid("shared")
SHARES = "MISC_SHARES_VIA_AGGREGATE"


def hosts_appear(nova: Nova) -> None:
    """Every host reports itself, as nova-compute does when it starts for the first time."""
    for host in HOSTS:
        client, tree = nova.tree(host)
        assert tree.get_provider_uuids() == [uuid(host)]
        assert not tree.has_inventory(host)
        amounts = {
            "VCPU": inventory(16, allocation_ratio=4.0),
            "MEMORY_MB": inventory(32768, reserved=512),
        }
        tree.update_traits(host, ["COMPUTE_NODE", "HW_CPU_X86_VMX", "CUSTOM_RACK_7"])
        if host in WITH_CARDS:
            amounts["DISK_GB"] = inventory(500)
            _add_cards(tree, host)
        tree.update_inventory(host, amounts)
        client.update_from_provider_tree(nova.context, tree)
        cached = client.get_provider_tree_and_ensure_root(nova.context, uuid(host), name=host)
        found = nova.note(f"{host} appears", nova.look(host))
        assert found == view(cached)
        assert {one["name"]: one["parent"] for one in found.values()} == _parents(host)
        root = found[uuid(host)]
        assert root["inventory"] == amounts
        assert root["traits"] == ["COMPUTE_NODE", "CUSTOM_RACK_7", "HW_CPU_X86_VMX"]


def _add_cards(tree: Any, host: str) -> None:
    for card in (1, 2):
        name = f"{host}-card-{card}"
        tree.new_child(name, host, uuid=uuid(name))
        tree.update_inventory(name, {"VGPU": inventory(4), "CUSTOM_SLICE": inventory(100)})
        tree.update_traits(name, ["HW_GPU_API_VULKAN", f"CUSTOM_CARD_{card}"])
    # Below the report client's methods: the inventories of only one card.
    tree.new_child(f"{host}-port", f"{host}-card-1", uuid=uuid(f"{host}-port"))
    tree.update_inventory(f"{host}-port", {"NET_BW_EGR_KILOBIT_PER_SEC": inventory(10_000_000)})


def _parents(host: str) -> dict[str, str | None]:
    cards = {f"{host}-card-{card}": uuid(host) for card in (1, 2)}
    port = {f"{host}-port": uuid(f"{host}-card-1")}
    return {host: None, **(cards | port if host in WITH_CARDS else {})}


def nothing_changes(nova: Nova) -> None:
    """A report without a change leaves the generations as they are."""
    before = nova.look("host-1")
    client, tree = nova.tree("host-1")
    client.update_from_provider_tree(nova.context, tree)
    assert nova.look("host-1") == before


def a_child_goes(nova: Nova) -> None:
    """A driver removes a card, and adds and replaces another."""
    client, tree = nova.tree("host-2")
    tree.new_child("host-2-card-3", "host-2", uuid=uuid("host-2-card-3"))
    tree.update_inventory("host-2-card-3", {"PGPU": inventory(1)})
    client.update_from_provider_tree(nova.context, tree)
    assert uuid("host-2-card-3") in nova.look("host-2")
    client, tree = nova.tree("host-2")
    tree.remove("host-2-card-3")
    tree.update_inventory("host-2-card-2", {"VGPU": inventory(8)})
    tree.update_traits("host-2-card-2", [])
    client.update_from_provider_tree(nova.context, tree)
    found = nova.note("a child is gone", nova.look("host-2"))
    assert uuid("host-2-card-3") not in found
    assert found[uuid("host-2-card-2")]["inventory"] == {"VGPU": inventory(8)}
    assert found[uuid("host-2-card-2")]["traits"] == []
    # A provider is deleted with all its descendants.
    client, tree = nova.tree("host-2")
    tree.remove("host-2-card-1")
    client.update_from_provider_tree(nova.context, tree)
    assert set(nova.look("host-2")) == {uuid("host-2"), uuid("host-2-card-2")}


def a_pool_is_shared(nova: Nova) -> None:
    """Two hosts have their disks in a pool; Nova finds it by the aggregate and the trait."""
    client, tree = nova.tree("host-3")
    tree.new_root(POOL, uuid(POOL))
    tree.update_inventory(POOL, {"DISK_GB": inventory(10_000)})
    tree.update_traits(POOL, [SHARES])
    tree.update_aggregates(POOL, [SHARED])
    tree.update_aggregates("host-3", [SHARED])
    client.update_from_provider_tree(nova.context, tree)
    nova.client().aggregate_add_host(nova.context, SHARED, host_name="host-4")
    for host in WITH_POOL:
        found = nova.note(f"{host} with its pool", nova.look(host))
        assert set(found) == {uuid(host), uuid(POOL)}
        assert found[uuid(POOL)]["aggregates"] == found[uuid(host)]["aggregates"] == [SHARED]
        _, tree = nova.tree(host)
        assert tree.has_sharing_provider("DISK_GB")


def aggregates(nova: Nova) -> None:
    """nova-api copies its host aggregates into the service, one host at a time."""
    client, row = nova.client(), uuid("row")
    for host in HOSTS[1:3]:
        client.aggregate_add_host(nova.context, row, host_name=host)
        client.aggregate_add_host(nova.context, row, rp_uuid=uuid(host))
    assert nova.look("host-2")[uuid("host-2")]["aggregates"] == [row]
    assert nova.look("host-3")[uuid("host-3")]["aggregates"] == sorted([row, SHARED])
    client.aggregate_remove_host(nova.context, row, "host-3")
    client.aggregate_remove_host(nova.context, row, "host-3")
    nova.note("aggregates", {host: nova.look(host) for host in HOSTS})
    assert nova.look("host-3")[uuid("host-3")]["aggregates"] == [SHARED]
    refusal(
        exception.ResourceProviderNotFound,
        lambda: client.aggregate_add_host(nova.context, row, host_name="nobody"),
    )


def somebody_was_faster(nova: Nova) -> None:
    """Nova's retries: it reads again what another client has changed, and then succeeds."""
    client, tree = nova.tree("host-1")
    nova.client().aggregate_add_host(nova.context, uuid("row"), host_name="host-1")
    tree.add_traits("host-1", "CUSTOM_LATE")
    refusal(
        exception.ResourceProviderUpdateConflict,
        lambda: client.update_from_provider_tree(nova.context, tree),
    )
    # After the conflict, the client has dropped the tree; nova-compute reports once more.
    tree = client.get_provider_tree_and_ensure_root(nova.context, uuid("host-1"), name="host-1")
    assert tree.in_aggregates("host-1", [uuid("row")])
    tree.add_traits("host-1", "CUSTOM_LATE")
    tree.update_inventory("host-1", {**tree.data("host-1").inventory, "PCPU": inventory(4)})
    client.update_from_provider_tree(nova.context, tree)
    assert "CUSTOM_LATE" in nova.look("host-1")[uuid("host-1")]["traits"]

    # Between a read and a write of the aggregates: the client itself retries.
    client, adapter = nova.meddled()
    other = nova.client()
    adapter.before(
        "PUT",
        "/aggregates",
        lambda: other.aggregate_remove_host(nova.context, uuid("row"), "host-1"),
    )
    client.aggregate_add_host(nova.context, uuid("bay"), host_name="host-1")
    assert adapter.acted
    found = nova.note("somebody was faster", nova.look("host-1"))
    assert found[uuid("host-1")]["aggregates"] == [uuid("bay")]


def what_cannot_be(nova: Nova) -> None:
    """Unknown names, and names that are taken, are Nova's own errors."""
    before = nova.look("host-1")
    for traits, amounts in (
        (["HW_NOT_A_TRAIT"], None),
        (["CUSTOM_bad"], None),
        (None, {"CUSTOM_bad": inventory(1)}),
        (None, {"NOT_A_CLASS": inventory(1)}),
        (None, {"VCPU": inventory(16, max_unit=0)}),
    ):
        client, tree = nova.tree("host-1")
        if traits is not None:
            tree.update_traits("host-1", traits)
        if amounts is not None:
            tree.update_inventory("host-1", amounts)
        refusal(
            exception.ResourceProviderSyncFailed,
            partial(client.update_from_provider_tree, nova.context, tree),
        )
    taken = nova.client()
    nova.note(
        "a name that is taken",
        refusal(
            exception.ResourceProviderCreationFailed,
            lambda: taken.get_provider_tree_and_ensure_root(
                nova.context, uuid("impostor"), name="host-1"
            ),
        ),
    )
    assert nova.look("host-1") == before


SCENES = (
    hosts_appear,
    nothing_changes,
    a_child_goes,
    a_pool_is_shared,
    aggregates,
    somebody_was_faster,
    what_cannot_be,
)
