"""The candidates that nova-scheduler requests, built from flavors and requests by Nova itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nova import objects

from tests.compat.nova_cloud import Nova, uuid
from tests.compat.nova_provider_scenes import HOSTS, POOL, WITH_CARDS, WITH_POOL
from tests.compat.nova_requests import candidates, flavor, spec

CARDS = (uuid("host-1-card-1"), uuid("host-1-card-2"), uuid("host-2-card-2"))
PLAIN = {"VCPU": 2, "MEMORY_MB": 2048}


def _offered(nova: Nova, name: str, wanted: Any) -> list[dict[str, Any]]:
    """Query candidates, note the whole answer, and return each candidate's amounts by provider."""
    found, summaries, version = candidates(nova, wanted)
    nova.note(f"candidates: {name}", {"requests": found, "summaries": summaries})
    assert version == "1.36"
    return [
        {provider: part["resources"] for provider, part in one["allocations"].items()}
        for one in found
    ]


def _asks(name: str, extra: Mapping[str, str] | None = None) -> Any:
    return spec(flavor(name, extra))


def _roots(offered: list[dict[str, Any]]) -> set[str]:
    return {host for host in HOSTS if any(uuid(host) in one for one in offered)}


def plain(nova: Nova) -> None:
    """CPUs, memory and a disk: from the host, or with the disk from the pool."""
    offered = _offered(nova, "plain", _asks("plain"))
    assert len(offered) == len(HOSTS)
    for host in WITH_CARDS:
        assert {uuid(host): {**PLAIN, "DISK_GB": 20}} in offered
    for host in WITH_POOL:
        assert {uuid(host): PLAIN, uuid(POOL): {"DISK_GB": 20}} in offered
    from_volume = spec(flavor("volume"), is_bfv=True)
    assert {uuid("host-3"): PLAIN} in _offered(nova, "from a volume", from_volume)
    assert _offered(nova, "much too large", _asks("large", {"resources:VCPU": "17"})) == []
    overridden = _asks("overridden", {"resources:VCPU": "4", "resources:DISK_GB": "0"})
    assert {uuid("host-4"): {"VCPU": 4, "MEMORY_MB": 2048}} in _offered(
        nova, "overridden", overridden
    )


def traits(nova: Nova) -> None:
    """Required and forbidden traits of a server, on hosts, cards and roots."""
    late = _asks("late", {"trait:CUSTOM_LATE": "required"})
    assert _roots(_offered(nova, "a trait", late)) == {"host-1"}
    never = _asks("never", {"trait:CUSTOM_LATE": "forbidden"})
    assert _roots(_offered(nova, "a forbidden trait", never)) == set(HOSTS[1:])
    params = objects.RequestLevelParams(
        root_required={"CUSTOM_RACK_7"}, root_forbidden={"CUSTOM_LATE"}
    )
    card = spec(flavor("card", {"resources:VGPU": "1"}), request_level_params=params)
    assert _roots(_offered(nova, "a trait of the root", card)) == {"host-2"}


def groups(nova: Nova) -> None:
    """Request groups of the flavor: on different cards or on any, and with traits of their own."""
    one_card = _asks("one card", {"resources1:VGPU": "2", "trait1:HW_GPU_API_VULKAN": "required"})
    offered = _offered(nova, "one card", one_card)
    assert {card for one in offered for card in one if card in CARDS} == set(CARDS[:2])
    two = {"resources1:VGPU": "1", "resources2:VGPU": "1"}
    apart = _offered(nova, "two cards", _asks("two", two | {"group_policy": "isolate"}))
    assert all(len(set(one) & set(CARDS)) == 2 for one in apart)
    assert len(apart) == 2
    anyhow = _offered(nova, "two anyhow", _asks("two", two | {"group_policy": "none"}))
    assert {len(set(one) & set(CARDS)) for one in anyhow} == {1, 2}
    named = _asks("named", {"resources_FAST:CUSTOM_SLICE": "10", "resources_FAST:VGPU": "1"})
    found, _, _ = candidates(nova, named)
    assert {tuple(one["mappings"]["_FAST"]) for one in found} == {(CARDS[0],), (CARDS[1],)}


def of_others(nova: Nova) -> None:
    """Requests of a port or an accelerator in addition to the flavor, and in the same subtree."""
    port, card = uuid("a port"), uuid("an accelerator")
    wanted = [
        objects.RequestGroup(requester_id=port, resources={"NET_BW_EGR_KILOBIT_PER_SEC": 1000}),
        objects.RequestGroup(requester_id=card, resources={"VGPU": 1}),
    ]
    params = objects.RequestLevelParams(same_subtree=[[port, card]])
    loose = spec(flavor("loose"), requested_resources=wanted)
    tight = spec(flavor("tight"), requested_resources=wanted, request_level_params=params)
    found, _, _ = candidates(nova, loose)
    mapped = {tuple(one["mappings"][card]) for one in found}
    assert mapped == {(CARDS[0],), (CARDS[1],)}
    assert len(_offered(nova, "of others", loose)) == len(mapped)
    found, _, _ = candidates(nova, tight)
    assert [one["mappings"][card] for one in found] == [[CARDS[0]]]
    assert [one["mappings"][port] for one in found] == [[uuid("host-1-port")]]
    nova.note("in the same subtree", found)


def places(nova: Nova) -> None:
    """One tree, and the host aggregates that a request may or must not use."""
    row, bay = uuid("row"), uuid("bay")
    found, _, _ = candidates(nova, spec(flavor("tree"), is_bfv=True), in_tree=uuid("host-4"))
    assert [set(one["allocations"]) for one in found] == [{uuid("host-4")}]
    either = objects.Destination(aggregates=[f"{row},{bay}"])
    assert _roots(
        _offered(nova, "aggregates", spec(flavor("either"), requested_destination=either))
    ) == set(WITH_CARDS)
    both = objects.Destination(aggregates=[row, bay])
    assert _offered(nova, "both aggregates", spec(flavor("both"), requested_destination=both)) == []
    neither = objects.Destination(forbidden_aggregates={row, bay})
    assert _roots(
        _offered(nova, "no aggregate", spec(flavor("no"), requested_destination=neither))
    ) == set(WITH_POOL)


def limits(nova: Nova) -> None:
    """The limit from Nova's settings; Nova omits the limit for servers that depend on others."""
    extra = {f"resources{number}:VGPU": "1" for number in (1, 2, 3)} | {"group_policy": "none"}
    limited, _, _ = candidates(nova, spec(flavor("limited", extra)))
    assert len(limited) == nova.limit
    hinted = spec(flavor("hinted", extra), scheduler_hints={"same_host": [uuid("other")]})
    assert len(_offered(nova, "without a limit", hinted)) > nova.limit


SCENES = (plain, traits, groups, of_others, places, limits)
