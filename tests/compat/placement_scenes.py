"""Commands about providers and their data, at any version.

Every scene creates its own data, so it can be played at each version against one service.
Each answer of a command is compared with that of a plain request.
"""

from __future__ import annotations

import uuid
from typing import Any

from tests.compat.placement_client import TREE_SINCE, PlacementClient

FAST = "HW_CPU_X86_AVX2"
BOTH = "HW_CPU_X86_AVX"
NOBODY = "HW_CPU_X86_SSE"


def new_id() -> str:
    """A new id."""
    return str(uuid.uuid4())


def by(key: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Rows of an answer, keyed by one of their cells, which is removed."""
    found = {row[key]: {k: v for k, v in row.items() if k != key} for row in rows}
    assert len(found) == len(rows)
    return found


def providers(client: PlacementClient) -> None:
    """Create, show, list, change, delete."""
    name, renamed, host = client.name("host"), client.name("guest"), new_id()
    made = client.ask("resource provider create", name, "--uuid", host)
    assert made == client.view(host)
    assert (made["uuid"], made["name"], made["generation"]) == (host, name, 0)
    assert "already exists" in client.refuses("resource provider create", name)
    changed = client.ask("resource provider set", host, "--name", renamed)
    assert changed == client.view(host) == {**made, "name": renamed}
    shown = client.ask("resource provider show", host, "--allocations")
    assert shown == {**changed, "allocations": {}}
    assert client.ask("resource provider list", "--name", name) == []
    listed = client.ask("resource provider list", "--name", renamed, "--uuid", host)
    assert listed == [changed]
    assert changed in client.ask("resource provider list")
    client.do("resource provider delete", host)
    assert "No resource provider with uuid" in client.refuses("resource provider show", host)


def trees(client: PlacementClient) -> None:
    """Parents of providers, from the version on that has them."""
    if client.minor < TREE_SINCE:
        return
    root, other, name = client.provider(), client.provider(), client.name("child")
    made = client.ask("resource provider create", name, "--parent-provider", root)
    child = made["uuid"]
    assert made == client.view(child)
    assert (made["parent_provider_uuid"], made["root_provider_uuid"]) == (root, root)
    command = ("resource provider set", child, "--name", name, "--parent-provider", other)
    if client.minor < 37:  # the version that moves them
        assert "re-parenting" in client.refuses(*command)
        moved = client.ask(
            *("resource provider set", other, "--name", client.name("moved")),
            *("--parent-provider", child),
        )
        assert (moved["parent_provider_uuid"], moved["root_provider_uuid"]) == (child, root)
        tree = {root, child, other}
    else:
        moved = client.ask(*command)
        assert (moved["parent_provider_uuid"], moved["root_provider_uuid"]) == (other, other)
        tree = {child, other}
    assert set(by("uuid", client.ask("resource provider list", "--in-tree", child))) == tree
    parent = child if client.view(child)["root_provider_uuid"] == root else other
    refusal = client.refuses("resource provider delete", parent)
    assert "Unable to delete parent resource provider" in refusal


def inventories(client: PlacementClient) -> None:
    """A provider's inventories: all at once, one class, and updates without a change."""
    host = client.provider()
    several = ("--resource", "VCPU=8", "--resource", "VCPU:max_unit=4", "--resource")
    rows = client.ask("resource provider inventory set", host, *several, "DISK_GB=100")
    assert by("resource_class", rows) == client.inventories(host)
    found = client.inventories(host)
    assert (found["VCPU"]["total"], found["VCPU"]["max_unit"]) == (8, 4)
    command = ("resource provider inventory set", host, "--amend", "--resource")
    rows = client.ask(*command, "VCPU:allocation_ratio=2.0", "--dry-run")
    assert by("resource_class", rows)["VCPU"]["allocation_ratio"] == 2.0
    assert client.inventories(host) == found
    rows = client.ask(*command, "VCPU:allocation_ratio=2.0")
    found["VCPU"]["allocation_ratio"] = 2.0
    assert by("resource_class", rows) == client.inventories(host) == found
    changed = {"total": 50, "reserved": 10, "min_unit": 5, "max_unit": 20, "step_size": 5}
    words = [word for field, n in changed.items() for word in (f"--{field}", str(n))]
    row = client.ask(
        *("resource provider inventory class set", host, "DISK_GB", *words),
        *("--allocation_ratio", "1.5"),
    )
    assert row == client.inventories(host)["DISK_GB"] == {**changed, "allocation_ratio": 1.5}
    row = client.ask("resource provider inventory show", host, "DISK_GB")
    assert row == {**changed, "allocation_ratio": 1.5, "used": 0}
    rows = client.ask("resource provider inventory list", host)
    assert by("resource_class", rows) == {"DISK_GB": row, "VCPU": {**found["VCPU"], "used": 0}}
    refusal = client.refuses("resource provider inventory class set", host, "VGPU", "--total", "1")
    assert "No inventory record with resource class" in refusal
    _take_away(client, host)


def _take_away(client: PlacementClient, host: str) -> None:
    command = ("resource provider inventory delete", host)
    client.do(*command, "--resource-class", "DISK_GB")
    assert set(client.inventories(host)) == {"VCPU"}
    if client.minor < 5:  # the version that takes all away
        assert "--resource-class" in client.refuses(*command)
        assert client.ask("resource provider inventory set", host) == []
    else:
        client.do(*command)
    assert client.inventories(host) == {}


def aggregates(client: PlacementClient) -> None:
    """Aggregates of providers, and inventories of all members."""
    if client.minor < 1:
        return
    host, other, first, second = client.provider(), client.provider(), new_id(), new_id()
    command = ["resource provider aggregate set", host, "--aggregate", first]
    if client.minor >= 19:  # the version that compares generations
        assert "A generation must be specified." in client.refuses(*command)
        generation = str(client.view(host)["generation"])
        command += ["--generation", generation]
    rows = client.ask(*command, "--aggregate", second)
    assert set(by("uuid", rows)) == {first, second}
    rows = client.ask("resource provider aggregate list", host)
    assert set(by("uuid", rows)) == {first, second}
    seen = client.look(f"/resource_providers/{host}/aggregates")
    assert set(seen["aggregates"]) == {first, second}
    if client.minor < 3:  # the version that lists by aggregate
        return
    client.mark(other, [], [second])
    rows = client.ask(
        *("resource provider inventory set", second, "--aggregate"), *("--resource", "VCPU=3")
    )
    assert {row["resource_provider"] for row in rows} == {host, other}
    for provider in (host, other):
        assert client.inventories(provider)["VCPU"]["total"] == 3


def finding(client: PlacementClient) -> None:
    """The list of providers, filtered by all parameters of the version."""
    fast, slow, rack, row = (
        client.provider({"VCPU": 8}),
        client.provider({"VCPU": 2}),
        new_id(),
        new_id(),
    )
    client.mark(fast, [FAST, BOTH], [rack, row])
    client.mark(slow, [BOTH], [row])
    wanted: tuple[tuple[int, tuple[str, ...], set[str]], ...] = (
        (3, ("--member-of", f"{rack},{new_id()}"), {fast}),
        (3, ("--aggregate-uuid", row), {fast, slow}),
        (4, ("--resource", "VCPU=4", "--member-of", row), {fast}),
        (18, ("--required", FAST, "--required", BOTH, "--member-of", row), {fast}),
        (22, ("--forbidden", FAST, "--required", BOTH, "--member-of", row), {slow}),
        (24, ("--member-of", row, "--member-of", rack), {fast}),
        (39, ("--required", f"{FAST},{NOBODY}", "--member-of", row), {fast}),
    )
    for since, words, expected in wanted:
        if client.minor >= since:
            rows = client.ask("resource provider list", *words)
            assert set(by("uuid", rows)) == expected, words


def classes(client: PlacementClient) -> None:
    """Resource classes: make, confirm, show, list, delete."""
    if client.minor < 2:  # the version that knows them
        return
    name = client.name("CUSTOM")
    client.do("resource class create", name)
    assert "already exists" in client.refuses("resource class create", name)
    assert client.ask("resource class show", name) == {"name": name}
    listed = {each["name"] for each in client.ask("resource class list")}
    seen = client.look("/resource_classes")["resource_classes"]
    assert listed == {each["name"] for each in seen}
    assert {name, "VCPU"} <= listed
    if client.minor >= 7:  # the version that confirms
        client.do("resource class set", name)
    client.do("resource class delete", name)
    assert "No such resource class" in client.refuses("resource class show", name)
    if client.minor >= 7:
        client.do("resource class set", name)
        assert client.look(f"/resource_classes/{name}")["name"] == name


def traits(client: PlacementClient) -> None:
    """Traits: make, show, list, delete, and give to providers."""
    if client.minor < 6:  # the version that knows them
        return
    name, host = client.name("CUSTOM"), client.provider()
    client.do("trait create", name)
    assert client.ask("trait show", name) == {"name": name}
    found = client.ask("trait list", "--name", f"startswith:{name}")
    assert found == client.ask("trait list", "--name", f"in:{name},NOBODY") == [{"name": name}]
    rows = client.ask("resource provider trait set", host, "--trait", name, "--trait", FAST)
    assert set(by("name", rows)) == {name, FAST}
    rows = client.ask("resource provider trait list", host)
    seen = client.look(f"/resource_providers/{host}/traits")
    assert set(by("name", rows)) == set(seen["traits"]) == {name, FAST}
    rows = client.ask("trait list", "--associated")
    assert {name, FAST} <= set(by("name", rows))
    assert "in use" in client.refuses("trait delete", name)
    client.do("resource provider trait delete", host)
    assert client.look(f"/resource_providers/{host}/traits")["traits"] == []
    client.do("trait delete", name)
    assert "No such trait" in client.refuses("trait show", name)
