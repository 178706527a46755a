"""Nova's use of the allocations of servers and migrations, in the order of a server's life."""

from __future__ import annotations

import copy
from typing import Any

from nova import exception

from tests.compat.nova_cloud import PROJECT, USER, Nova, inventory, refusal, uuid
from tests.compat.nova_provider_scenes import POOL
from tests.compat.nova_requests import amounts, candidates, flavor, spec

CPU, CARD, DISK = {"VCPU": 2, "MEMORY_MB": 2048}, {"VGPU": 1}, {"DISK_GB": 20}


def _claim(nova: Nova, server: str, wanted: Any, root: str, client: Any = None) -> bool:
    """Claim the first candidate on a host, as nova-scheduler does."""
    found, _, version = candidates(nova, wanted)
    chosen = next(one for one in found if uuid(root) in one["allocations"])
    using = client or nova.client()
    claimed = using.claim_resources(
        nova.context, uuid(server), chosen, PROJECT, USER, version, consumer_generation=None
    )
    return bool(claimed)


def _held(nova: Nova, consumer: str) -> dict[str, dict[str, int]]:
    found = nova.client().get_allocs_for_consumer(nova.context, uuid(consumer))
    return amounts(found["allocations"])


def _card_of(held: dict[str, Any]) -> str:
    return next(provider for provider, part in held.items() if "VGPU" in part)


def claims(nova: Nova) -> None:
    """Servers are booted: on a host with a card, and on one with its disk in the pool."""
    card = spec(flavor("card", {"resources:VGPU": "1"}))
    assert _claim(nova, "server-1", card, "host-1")
    held = _held(nova, "server-1")
    assert held[uuid("host-1")] == {**CPU, **DISK}
    assert held[_card_of(held)] == CARD
    assert _claim(nova, "server-2", spec(flavor("small")), "host-3")
    assert _held(nova, "server-2") == {uuid("host-3"): CPU, uuid(POOL): DISK}
    whole = nova.client().get_allocs_for_consumer(nova.context, uuid("server-2"))
    assert (whole["project_id"], whole["user_id"]) == (PROJECT, USER)
    assert nova.note("claimed", whole)["consumer_generation"] == 1
    assert _held(nova, "nobody") == {}
    by_host = nova.client().get_allocations_for_resource_provider(nova.context, uuid(POOL))
    assert nova.note("of the pool", by_host.allocations) == {uuid("server-2"): {"resources": DISK}}


def claims_that_fail(nova: Nova) -> None:
    """Amounts over capacity are rejected, and a concurrent write is noticed."""
    found, _, version = candidates(nova, spec(flavor("small")))
    chosen = copy.deepcopy(next(one for one in found if uuid("host-3") in one["allocations"]))
    chosen["allocations"][uuid("host-3")]["resources"]["VCPU"] = 65
    client, adapter = nova.meddled()
    arguments = (nova.context, uuid("server-3"), chosen, PROJECT, USER, version)
    assert not client.claim_resources(*arguments)
    assert _held(nova, "server-3") == {}
    chosen["allocations"] = {uuid("unknown"): {"resources": {"VCPU": 1}}}
    assert not client.claim_resources(nova.context, uuid("server-4"), *arguments[2:])

    # Two schedulers claim for one server at the same time; the second one fails.
    small = spec(flavor("small"))
    adapter.before("PUT", "/allocations", lambda: _claim(nova, "server-3", small, "host-4"))
    refusal(
        exception.AllocationUpdateFailed, lambda: _claim(nova, "server-3", small, "host-1", client)
    )
    assert adapter.acted
    assert set(_held(nova, "server-3")) == {uuid("host-4"), uuid(POOL)}


def a_move(nova: Nova) -> None:
    """A migration takes over a server's allocations; the server gets those of a new host."""
    client = nova.client()
    assert client.move_allocations(nova.context, uuid("server-1"), uuid("migration-1"))
    assert _held(nova, "server-1") == {}
    held = _held(nova, "migration-1")
    assert held[uuid("host-1")] == {**CPU, **DISK}
    # This was done already: the second move finds nothing at the source, and succeeds.
    assert client.move_allocations(nova.context, uuid("server-1"), uuid("migration-1"))
    card = spec(flavor("card", {"resources:VGPU": "1"}))
    assert _claim(nova, "server-1", card, "host-2")
    nova.note("moving", {who: _held(nova, who) for who in ("server-1", "migration-1")})
    # The migration is confirmed: the source is free again.
    assert client.delete_allocation_for_instance(nova.context, uuid("migration-1"), "migration")
    assert not client.delete_allocation_for_instance(nova.context, uuid("migration-1"), "migration")
    assert _held(nova, "migration-1") == {}
    assert uuid("host-2-card-2") in _held(nova, "server-1")


def a_move_back(nova: Nova) -> None:
    """A resize is reverted: the server gets back the allocations of its migration."""
    client, adapter = nova.meddled()
    assert client.move_allocations(nova.context, uuid("server-2"), uuid("migration-2"))
    assert _claim(nova, "server-2", spec(flavor("large", disk=40)), "host-4")
    assert _held(nova, "server-2")[uuid(POOL)] == {"DISK_GB": 40}
    assert client.move_allocations(nova.context, uuid("migration-2"), uuid("server-2"))
    assert _held(nova, "server-2") == {uuid("host-3"): CPU, uuid(POOL): DISK}
    assert _held(nova, "migration-2") == {}

    other = nova.client()
    payload = other.get_allocs_for_consumer(nova.context, uuid("server-2"))
    adapter.before(
        "POST",
        "/allocations",
        lambda: other.put_allocations(nova.context, uuid("server-2"), payload),
    )
    refusal(
        exception.AllocationMoveFailed,
        lambda: client.move_allocations(nova.context, uuid("server-2"), uuid("migration-3")),
    )
    assert adapter.acted
    assert _held(nova, "migration-3") == {}
    nova.note("moved back", other.get_allocs_for_consumer(nova.context, uuid("server-2")))


def more_and_less(nova: Nova) -> None:
    """An interface is attached and detached, while another client writes the same allocations."""
    client, adapter = nova.meddled()
    other, server = nova.client(), uuid("server-3")
    port = {uuid("host-1-port"): {"resources": {"NET_BW_EGR_KILOBIT_PER_SEC": 1000}}}

    def meddle() -> None:
        held = other.get_allocs_for_consumer(nova.context, server)
        assert other.put_allocations(nova.context, server, held)

    adapter.before("PUT", "/allocations", meddle)
    client.add_resources_to_instance_allocation(nova.context, server, port)
    client.add_resources_to_instance_allocation(nova.context, server, port)
    assert adapter.acted
    assert _held(nova, "server-3")[uuid("host-1-port")] == {"NET_BW_EGR_KILOBIT_PER_SEC": 2000}
    adapter.before("PUT", "/allocations", meddle)
    client.remove_resources_from_instance_allocation(nova.context, server, port)
    assert adapter.acted
    assert _held(nova, "server-3")[uuid("host-1-port")] == {"NET_BW_EGR_KILOBIT_PER_SEC": 1000}
    client.remove_resources_from_instance_allocation(nova.context, server, port)
    assert uuid("host-1-port") not in _held(nova, "server-3")
    too_much = {uuid("host-1-port"): {"resources": {"NET_BW_EGR_KILOBIT_PER_SEC": 10_000_001}}}
    refusal(
        exception.AllocationUpdateFailed,
        lambda: client.add_resources_to_instance_allocation(nova.context, server, too_much),
    )
    nova.note("more and less", other.get_allocs_for_consumer(nova.context, server))


def an_evacuation(nova: Nova) -> None:
    """An evacuated server holds both hosts, until its allocations on the dead host are removed."""
    assert _claim(nova, "server-2", spec(flavor("small")), "host-1")
    held = nova.note("evacuated", _held(nova, "server-2"))
    assert held == {uuid("host-1"): {**CPU, **DISK}, uuid("host-3"): CPU, uuid(POOL): DISK}
    client = nova.client()
    assert client.remove_provider_tree_from_instance_allocation(
        nova.context, uuid("server-2"), uuid("host-3")
    )
    # By Nova's own rule, another step has to remove what the server holds of the pool.
    assert _held(nova, "server-2") == {uuid("host-1"): {**CPU, **DISK}, uuid(POOL): DISK}
    left = {uuid(POOL): {"resources": DISK}}
    client.remove_resources_from_instance_allocation(nova.context, uuid("server-2"), left)
    assert _held(nova, "server-2") == {uuid("host-1"): {**CPU, **DISK}}


def usages(nova: Nova) -> None:
    """Quotas and limits are counted by project, and by user."""
    client = nova.client()
    of_project = nova.note("limits", client.get_usages_counts_for_limits(nova.context, PROJECT))
    assert of_project == {"VCPU": 6, "MEMORY_MB": 6144, "DISK_GB": 60, "VGPU": 1}
    assert client.get_usages_counts_for_limits(nova.context, "nobody") == {}
    counted = client.get_usages_counts_for_quota(nova.context, PROJECT, user_id=USER)
    assert counted == {kind: {"cores": 6, "ram": 6144} for kind in ("project", "user")}
    other = client.get_usages_counts_for_quota(nova.context, PROJECT, user_id="nobody")
    assert other["user"] == {"cores": 0, "ram": 0}


def what_is_held_stays(nova: Nova) -> None:
    """An inventory or a provider that a server uses cannot be deleted."""
    client, tree = nova.tree("host-1")
    tree.update_inventory("host-1", {"VCPU": inventory(16), "MEMORY_MB": inventory(32768)})
    refusal(exception.InventoryInUse, lambda: client.update_from_provider_tree(nova.context, tree))
    client, tree = nova.tree("host-2")
    tree.remove("host-2-card-2")
    refusal(
        exception.ResourceProviderSyncFailed,
        lambda: client.update_from_provider_tree(nova.context, tree),
    )
    assert uuid("host-2-card-2") in nova.look("host-2")
    nova.note("what is held stays", nova.look("host-1"))


def a_deletion(nova: Nova) -> None:
    """A server is deleted: carefully, with a concurrent write, and by force."""
    client, adapter = nova.meddled()
    other, server = nova.client(), uuid("server-3")
    payload = other.get_allocs_for_consumer(nova.context, server)
    adapter.before(
        "PUT", "/allocations", lambda: other.put_allocations(nova.context, server, payload)
    )
    refusal(
        exception.AllocationDeleteFailed,
        lambda: client.delete_allocation_for_instance(nova.context, server),
    )
    assert _held(nova, "server-3")
    assert client.delete_allocation_for_instance(nova.context, server, force=True)
    assert not client.delete_allocation_for_instance(nova.context, server, force=True)
    assert _held(nova, "server-3") == {}
    stale = {**payload, "allocations": {uuid("host-1"): {"resources": {"VCPU": 1}}}}
    refusal(
        exception.AllocationUpdateFailed,
        lambda: client.put_allocations(nova.context, server, stale),
    )


SCENES = (
    claims,
    claims_that_fail,
    a_move,
    a_move_back,
    more_and_less,
    an_evacuation,
    usages,
    what_is_held_stays,
    a_deletion,
)
