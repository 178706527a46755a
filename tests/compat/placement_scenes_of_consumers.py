"""Commands about consumers and candidates, at any version."""

from __future__ import annotations

from typing import Any

from tests.compat.placement_client import PlacementClient
from tests.compat.placement_scenes import BOTH, FAST, NOBODY, by, new_id

OWNERS_SINCE = 8
USAGES_SINCE = 9
CANDIDATES_SINCE = 10
OBJECTS_SINCE = 12
TREES_SINCE = 29
TYPES_SINCE = 38


def allocations(client: PlacementClient) -> None:
    """A consumer's allocations: set, show, remove parts of them, delete."""
    one, two = (client.provider({"VCPU": 8, "DISK_GB": 100}) for _ in range(2))
    consumer, project, user = new_id(), new_id(), new_id()
    owners = _owners(client, project, user)
    command = ("resource provider allocation set", consumer, *owners, "--allocation")
    much = client.refuses(*command, f"rp={one},VCPU=9")
    assert "Unable to allocate inventory" in much
    rows = client.ask(
        *(*command, f"rp={one},VCPU=1", "--allocation", f"rp={one},DISK_GB=10"),
        *("--allocation", f"rp={two},VCPU=2"),
    )
    held = by("resource_provider", rows)
    assert _amounts(held) == {one: {"VCPU": 1, "DISK_GB": 10}, two: {"VCPU": 2}}
    seen = client.look(f"/allocations/{consumer}")
    assert _amounts(seen["allocations"]) == _amounts(held)
    for provider, row in held.items():
        assert row["generation"] == client.view(provider)["generation"]
        if client.minor >= OBJECTS_SINCE:
            assert (row["project_id"], row["user_id"]) == (project, user)
        if client.minor >= TYPES_SINCE:
            assert row["consumer_type"] == seen["consumer_type"] == "INSTANCE"
    rows = client.ask("resource provider allocation show", consumer)
    assert by("resource_provider", rows) == held
    shown = client.ask("resource provider show", one, "--allocations")["allocations"]
    assert _amounts(shown) == {consumer: {"VCPU": 1, "DISK_GB": 10}}
    _usages(client, one, project, user)
    if client.minor >= OBJECTS_SINCE:
        _take_parts_away(client, consumer, one, two)
        client.ask(*command, f"rp={one},VCPU=1")
    client.do("resource provider allocation delete", consumer)
    assert client.look(f"/allocations/{consumer}")["allocations"] == {}
    twice = client.refuses("resource provider allocation delete", consumer)
    assert "No allocations for consumer" in twice


def _owners(client: PlacementClient, project: str, user: str) -> list[str]:
    words = []
    if client.minor >= OWNERS_SINCE:
        words += ["--project-id", project, "--user-id", user]
    if client.minor >= TYPES_SINCE:
        words += ["--consumer-type", "INSTANCE"]
    return words


def _amounts(lines: dict[str, Any]) -> dict[str, Any]:
    return {key: line["resources"] for key, line in lines.items()}


def _usages(client: PlacementClient, provider: str, project: str, user: str) -> None:
    rows = client.ask("resource provider usage show", provider)
    usages = {row["resource_class"]: row["usage"] for row in rows}
    seen = client.look(f"/resource_providers/{provider}/usages")["usages"]
    assert usages == seen == {"VCPU": 1, "DISK_GB": 10}
    if client.minor < USAGES_SINCE:
        return
    rows = client.ask("resource usage show", project, "--user-id", user)
    usages = {row["resource_class"]: row["usage"] for row in rows}
    # The client does not know that newer answers have consumer types at the place of classes.
    whole = {"VCPU": 3, "DISK_GB": 10}
    by_type = {"INSTANCE": {**whole, "consumer_count": 1}}
    assert usages == (by_type if client.minor >= TYPES_SINCE else whole)
    assert client.ask("resource usage show", project, "--user-id", new_id()) == []


def _take_parts_away(client: PlacementClient, consumer: str, one: str, two: str) -> None:
    command = ("resource provider allocation unset", consumer)
    rows = client.ask(*command, "--provider", one, "--resource-class", "DISK_GB")
    assert _amounts(by("resource_provider", rows)) == {one: {"VCPU": 1}, two: {"VCPU": 2}}
    rows = client.ask(*command, "--provider", two)
    assert _amounts(by("resource_provider", rows)) == {one: {"VCPU": 1}}
    assert client.ask(*command) == []
    assert client.look(f"/allocations/{consumer}")["allocations"] == {}


def candidates(client: PlacementClient) -> None:
    """Candidates, filtered by all parameters of the version."""
    if client.minor < CANDIDATES_SINCE:
        return
    # A class of this version's own: providers of other versions are no candidates then.
    name = client.name("CUSTOM")
    client.send("PUT", f"/resource_classes/{name}")
    fast, slow = client.provider({name: 8}), client.provider({name: 2})
    rack, row = new_id(), new_id()
    client.mark(fast, [FAST, BOTH], [rack, row])
    client.mark(slow, [BOTH], [row])
    rows = client.ask("allocation candidate list", "--resource", f"{name}=1")
    found = by("resource provider", rows)
    assert set(found) == {fast, slow}
    assert found[fast]["allocation"] == f"{name}=1"
    assert found[fast]["inventory used/capacity"] == f"{name}=0/8"
    if client.minor >= 17:  # the version that shows them
        assert set(found[fast]["traits"].split(",")) == {FAST, BOTH}
    query = f"/allocation_candidates?resources={name}:1"
    assert len(client.look(query)["allocation_requests"]) == len(found)
    both = {fast, slow}
    wanted: tuple[tuple[int, tuple[str, ...], set[str]], ...] = (
        (17, ("--required", FAST, "--required", BOTH), {fast}),
        (21, ("--member-of", f"{rack},{new_id()}"), {fast}),
        (21, ("--aggregate-uuid", row), both),
        (22, ("--forbidden", FAST, "--required", BOTH), {slow}),
        (24, ("--member-of", row, "--member-of", rack), {fast}),
        (39, ("--required", f"{FAST},{NOBODY}"), {fast}),
    )
    for since, words, expected in wanted:
        if client.minor >= since:
            rows = client.ask("allocation candidate list", "--resource", f"{name}=1", *words)
            assert set(by("resource provider", rows)) == expected, words
    if client.minor >= 16:  # the version that has a limit
        few = client.ask("allocation candidate list", "--resource", f"{name}=1", "--limit", "1")
        assert len(few) == 1
        assert few[0]["resource provider"] in both


def groups(client: PlacementClient) -> None:
    """Several groups, from different providers of one tree or from any."""
    if client.minor < 25:  # the version that has groups
        return
    name = client.name("CUSTOM")
    client.send("PUT", f"/resource_classes/{name}")
    root = client.provider({name: 4})
    leaf = client.provider({name: 4}, parent=root)
    client.mark(leaf, [FAST], [])
    two = ("--group", "1", "--resource", f"{name}=1", "--group", "2", "--resource", f"{name}=1")
    alone = client.ask("allocation candidate list", *two, "--group-policy", "isolate")
    pairs = _requests(alone)
    if client.minor < TREES_SINCE:
        # Before the version with nested providers, two providers of one tree are no candidate.
        assert pairs == []
    else:
        assert pairs == [{root, leaf}, {root, leaf}]
    together = _requests(client.ask("allocation candidate list", *two, "--group-policy", "none"))
    alike = [{root}, {leaf}]
    assert sorted(map(sorted, together)) == sorted(map(sorted, alike + pairs))
    apart = client.ask("allocation candidate list", *two, "--required", FAST)
    wanted = [{leaf}] if client.minor < TREES_SINCE else [{leaf}, {root, leaf}]
    assert sorted(map(sorted, _requests(apart))) == sorted(map(sorted, wanted))


def _requests(rows: list[dict[str, Any]]) -> list[set[str]]:
    """The providers of each request; a request has as many rows as providers."""
    found: dict[int, set[str]] = {}
    for row in rows:
        found.setdefault(row["#"], set()).add(row["resource provider"])
    return list(found.values())
