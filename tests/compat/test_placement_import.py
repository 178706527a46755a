"""The import of a running Placement: the real original, a real service, the real program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.compat.moving import EVERYTHING, Run, at, generations, of_original, of_ours
from tests.support.original import Original
from tests.support.placement_world import named
from tests.support.running import Running, running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(360)]


def test_a_whole_cloud_is_copied_once(filled: Original, target: Running, bring: Run) -> None:
    theirs, ours = of_original(filled), of_ours(target)

    status, reported, _ = bring(filled.url, at(target), "--dry-run")
    assert status == 1
    assert "providers created, renamed or moved: 12\n" in reported
    assert "consumers written: 19\n" in reported
    assert generations(ours) == {}

    status, reported, warned = bring(filled.url, at(target))
    assert (status, reported) == (0, EVERYTHING), warned

    # This is checked with a client other than the program's own.
    shrunk, odd, card = named("shrunk"), named("odd"), named("rechner-ä1-card")
    for uuid in (shrunk, odd, card, named("shared pool ✓")):
        for noun in ("inventories", "usages", "traits", "aggregates", "allocations"):
            path = f"/resource_providers/{uuid}/{noun}"
            assert plain(ours.call("GET", path)[noun]) == plain(theirs.call("GET", path)[noun])
    row = ours.call("GET", f"/resource_providers/{card}")
    assert row["parent_provider_uuid"] == named("rechner-ä1-numa")
    assert row["root_provider_uuid"] == named("rechner-ä1")
    consumer = ours.call("GET", f"/allocations/{named('consumer', '1-2')}")
    assert consumer["consumer_type"] == "unknown"
    assert consumer["project_id"], consumer["user_id"] == ("project-1", "Jürgen 2")
    assert ours.call("GET", f"/allocations/{named('consumer', 'odd')}")["consumer_type"] == (
        "MIGRATION"
    )

    before = generations(ours)
    assert bring(filled.url, at(target))[:2] == (0, reported)
    assert bring(filled.url, at(target), "--verify-only")[:2] == (0, reported)
    status, counted, _ = bring(filled.url, at(target), "--dry-run")
    assert status == 0
    assert {line.rpartition(": ")[2] for line in counted.splitlines()} == {"0"}
    assert generations(ours) == before


def plain(shown: Any) -> Any:
    """Without order, and without the generations, which each service counts by itself."""
    if isinstance(shown, list):
        return sorted(shown)
    kept = (each for each in shown.items() if "generation" not in each[0])
    return {key: plain(value) if isinstance(value, dict) else value for key, value in kept}


def test_each_kind_of_difference_is_found_and_mended(
    filled: Original, target: Running, bring: Run
) -> None:
    assert bring(filled.url, at(target))[0] == 0
    ours = of_ours(target)
    host, numa, card = (named(f"rechner-ä0{part}") for part in ("", "-numa", "-card"))
    other_host, pool, odd = named("rechner-ä1"), named("shared pool ✓"), named("odd")
    server, untyped, moved = (named("consumer", each) for each in ("0-1", "0-2", "0-3"))
    gone = named("consumer", "1-1")

    ours.call("PUT", f"/resource_providers/{host}", {"name": "renamed"})
    ours.call(
        "PUT",
        f"/resource_providers/{card}",
        {"name": "rechner-ä0-card", "parent_provider_uuid": other_host},
    )
    stranger = ours.provider("stranger", {"VCPU": {"total": 1}})
    ours.set(numa, "inventories", {"PCPU": {"total": 5, "reserved": 4}})
    ours.set(odd, "inventories", {"DISK_GB": {"total": 1000}, "MEMORY_MB": {"total": 1}})
    ours.set(numa, "traits", ["HW_NUMA_ROOT"])
    ours.set(host, "aggregates", [named("rack"), named("cellar")])
    holds = {host: {"VCPU": 2, "MEMORY_MB": 1024}, card: {"CUSTOM_GPU_SLICE": 1}}
    ours.hold(
        "0-1", {**holds, pool: {"DISK_GB": 11}}, project="project-0", user="Jürgen 1", is_new=False
    )
    ours.hold(
        "0-2", {**holds, pool: {"DISK_GB": 10}}, project="project-0", user="Jürgen 2", is_new=False
    )
    ours.hold("0-3", {**holds, pool: {"DISK_GB": 10}}, project="theirs", user="me", is_new=False)
    ours.call("DELETE", f"/allocations/{gone}")
    extra = ours.hold("extra", {other_host: {"VCPU": 1}})

    status, reported, _ = bring(filled.url, at(target), "--verify-only")
    assert status == 1
    usage = f"provider {pool}: usage of DISK_GB: 123 in the source, 114 in the target"
    expected = [
        f'provider {host}: name: "rechner-ä0" in the source, "renamed" in the target',
        f"provider {card}: parent: {numa} in the source, {other_host} in the target",
        f'provider {stranger} "stranger": only in the target',
        f"provider {numa}: inventory of PCPU: total: 4 in the source, 5 in the target",
        f"provider {odd}: inventory of DISK_GB: step_size: 10 in the source, 1 in the target",
        f"provider {odd}: inventory of VCPU: only in the source",
        f"provider {odd}: inventory of MEMORY_MB: only in the target",
        f"provider {numa}: trait HW_NUMA_ROOT: only in the target",
        f"provider {host}: aggregate {named('hall')}: only in the source",
        f"provider {host}: aggregate {named('cellar')}: only in the target",
        f"consumer {server}: allocation of provider {pool} DISK_GB: 10 in the source, "
        "11 in the target",
        f"consumer {untyped}: type: none in the source, INSTANCE in the target",
        f'consumer {moved}: project: "project-0" in the source, "theirs" in the target',
        f'consumer {moved}: user: "Jürgen 0" in the source, "me" in the target',
        f"consumer {gone}: only in the source",
        f"consumer {extra}: only in the target",
        usage,
        'project "theirs": usage of VCPU: 0 in the source, 2 in the target',
    ]
    lines = reported.splitlines()
    assert [line for line in expected if line not in lines] == [], reported
    assert lines[-1] == f"{len(lines) - 1} differences"

    before = generations(ours)
    status, reported, warned = bring(filled.url, at(target))
    assert (status, reported) == (2, "")
    assert f"providers that the source lacks: 1 ({stranger})" in warned
    assert f"consumers that the source lacks: 1 ({extra})" in warned
    assert generations(ours) == before

    status, reported, warned = bring(filled.url, at(target), "--others", "keep")
    assert (status, reported) == (0, EVERYTHING), warned
    assert stranger in generations(ours)
    assert bring(filled.url, at(target), "--verify-only")[0] == 1

    status, reported, warned = bring(filled.url, at(target), "--others", "remove")
    assert (status, reported) == (0, EVERYTHING), warned
    assert stranger not in generations(ours)


def test_a_source_in_use_is_caught_up_with(source: Original, target: Running, bring: Run) -> None:
    theirs = of_original(source)
    theirs.fill()
    assert bring(source.url, at(target))[0] == 0
    host, other = named("rechner-ä0"), named("rechner-ä1")

    # Two hosts exchange their names, and a server moves while another takes its place.
    for uuid, name in ((host, "interim"), (other, "rechner-ä0"), (host, "rechner-ä1")):
        theirs.call("PUT", f"/resource_providers/{uuid}", {"name": name})
    theirs.hold("0-1", {other: {"VCPU": 2, "MEMORY_MB": 1024}}, is_new=False)
    theirs.hold("1-1", {host: {"VCPU": 2, "MEMORY_MB": 1024}}, is_new=False)
    # Parent and child are exchanged.
    numa, card = named("rechner-ä2-numa"), named("rechner-ä2-card")
    for uuid, name, parent in (
        (card, "rechner-ä2-card", named("rechner-ä2")),
        (numa, "rechner-ä2-numa", card),
    ):
        body = {"name": name, "parent_provider_uuid": parent}
        theirs.call("PUT", f"/resource_providers/{uuid}", body)
    # A host is removed, a new one gets its name, and a class of inventory is removed.
    for server in range(6):
        theirs.call("DELETE", f"/allocations/{named('consumer', f'shrunk-{server}')}")
    theirs.call("DELETE", f"/resource_providers/{named('shrunk')}")
    body = {"uuid": named("another"), "name": "shrunk", "parent_provider_uuid": other}
    theirs.call("POST", "/resource_providers", body)
    theirs.call("DELETE", f"/allocations/{named('consumer', 'odd')}")
    theirs.set(named("odd"), "inventories", {"VCPU": {"total": 8}})
    theirs.hold("new", {named("odd"): {"VCPU": 1}})

    status, _, warned = bring(source.url, at(target))
    assert status == 2
    assert "--others remove" in warned
    status, reported, warned = bring(source.url, at(target), "--others", "remove")
    assert (status, reported) == (0, "equal: 12 providers, 13 consumers\n"), warned


def test_between_two_of_ours_and_back_to_the_original(
    filled: Original, source: Original, target: Running, bring: Run, tmp_path: Path
) -> None:
    assert bring(filled.url, at(target))[0] == 0
    with running(tmp_path / "next", apis=("placement",), placement_prefix="") as following:
        assert bring(at(target), following.url)[0] == 0
        status, reported, warned = bring(following.url, source.url)
        assert (status, reported) == (0, EVERYTHING), warned
        # The source must be the same, whichever route the requests took.
        assert bring(filled.url, source.url, "--verify-only")[:2] == (0, reported)
