"""A running Placement is brought over: the real original, a real service, the real program."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from innkeeper.main import main
from tests.compat.openstack_command import SOURCE, environment
from tests.support.original import Original, original
from tests.support.placement_world import World, named
from tests.support.running import Running, running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

Run = Callable[..., tuple[int, str, str]]
ENDS_WITHIN_S = 60.0
EVERYTHING = "equal: 12 providers, 19 consumers\n"


def of_original(peer: Original) -> World:
    def call(method: str, path: str, body: Any = None, version: str = "1.39") -> Any:
        answer = peer.call(method, path, version=version, body=body)
        assert answer.is_success, f"{method} {path}: {answer.text}"
        return answer.json() if answer.content else None

    return World(call)


def of_ours(service: Running, prefix: str = "/placement") -> World:
    def call(method: str, path: str, body: Any = None, version: str = "1.39") -> Any:
        headers = {"openstack-api-version": f"placement {version}"}
        answer = service.call(method, prefix + path, json=body, headers=headers)
        assert answer.is_success, f"{method} {path}: {answer.text}"
        return answer.json() if answer.content else None

    return World(call)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Original]:
    """A source that no test changes."""
    with original(tmp_path_factory.mktemp("filled")) as peer:
        of_original(peer).fill()
        yield peer


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Original]:
    """A source of one's own."""
    with original(tmp_path) as peer:
        yield peer


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "target", apis=("placement",)) as service:
        yield service


def words(from_url: str, to_url: str) -> list[str]:
    return [
        *("placement-import", "--from-url", from_url, "--from-token", "admin"),
        *("--to-url", to_url, "--to-token", "admin"),
    ]


@pytest.fixture
def bring(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command; gives its status, its findings and the rest of its output."""

    def run(from_url: str, to_url: str, *more: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main([*words(from_url, to_url), *more])
        told = capsys.readouterr()
        return status, told.out, told.err

    return run


def at(service: Running) -> str:
    return f"{service.url}/placement"


def generations(world: World) -> dict[str, int]:
    rows = world.call("GET", "/resource_providers")["resource_providers"]
    return {row["uuid"]: row["generation"] for row in rows}


def test_a_whole_cloud_moves_and_moves_once(
    filled: Original, target: Running, bring: Run
) -> None:
    theirs, ours = of_original(filled), of_ours(target)

    status, told, _ = bring(filled.url, at(target), "--dry-run")
    assert status == 1
    assert "providers made, renamed or moved: 12\n" in told
    assert "consumers written: 19\n" in told
    assert generations(ours) == {}

    status, told, warned = bring(filled.url, at(target))
    assert (status, told) == (0, EVERYTHING), warned

    # Looked at by other eyes than the program's own.
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
    assert bring(filled.url, at(target))[:2] == (0, told)
    assert bring(filled.url, at(target), "--verify-only")[:2] == (0, told)
    status, counted, _ = bring(filled.url, at(target), "--dry-run")
    assert status == 0
    assert {line.rpartition(": ")[2] for line in counted.splitlines()} == {"0"}
    assert generations(ours) == before


def plain(shown: Any) -> Any:
    """Without order, and without what each service counts by itself."""
    if isinstance(shown, list):
        return sorted(shown)
    kept = (each for each in shown.items() if "generation" not in each[0])
    return {key: plain(value) if isinstance(value, dict) else value for key, value in kept}


@contextmanager
def begun(from_url: str, to_url: str, *more: str) -> Iterator[subprocess.Popen[str]]:
    """The program in a process of its own."""
    program = subprocess.Popen(
        [sys.executable, "-m", "innkeeper.main", *words(from_url, to_url), *more],
        env=environment(PYTHONPATH=str(SOURCE)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with program:
        yield program


def until(program: subprocess.Popen[str], moment: str) -> None:
    """Wait until the program says that it has come so far."""
    assert program.stderr is not None
    assert any(line.startswith(moment) for line in program.stderr), "It ended before."


@pytest.mark.parametrize(
    "moment",
    [
        "target: writing providers: 0 of 3",
        "target: writing inventories, traits and aggregates: 0 of",
        "target: writing consumers: 0 of",
        "target: writing consumers: 19 of 19",
        "target: writing final inventories: 2 of 2",
    ],
)
def test_what_was_killed_goes_on(
    filled: Original, target: Running, bring: Run, moment: str
) -> None:
    with begun(filled.url, at(target)) as program:
        until(program, moment)
        program.send_signal(signal.SIGKILL)
        assert program.wait(ENDS_WITHIN_S) == -signal.SIGKILL

    status, told_at_last, warned = bring(filled.url, at(target))
    assert (status, told_at_last) == (0, EVERYTHING), warned


def test_it_can_be_interrupted(filled: Original, target: Running) -> None:
    with begun(filled.url, at(target)) as program:
        until(program, "target: writing consumers: 0 of")
        program.send_signal(signal.SIGINT)
        assert program.wait(ENDS_WITHIN_S) == 130
        assert program.stderr is not None
        *_, last = program.stderr
        assert last == "innkeeper placement-import: interrupted; run it again to go on.\n"


def test_findings_that_nobody_reads_to_their_end_are_no_accident(
    filled: Original, target: Running
) -> None:
    with begun(filled.url, at(target), "--verify-only") as program:
        assert program.stdout is not None
        program.stdout.close()
        assert program.wait(ENDS_WITHIN_S) == 1
        assert program.stderr is not None
        assert not any("rror" in line for line in program.stderr)


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
        "0-1",
        {**holds, pool: {"DISK_GB": 11}},
        project="project-0",
        user="Jürgen 1",
        is_new=False,
    )
    ours.hold(
        "0-2",
        {**holds, pool: {"DISK_GB": 10}},
        project="project-0",
        user="Jürgen 2",
        is_new=False,
    )
    ours.hold(
        "0-3", {**holds, pool: {"DISK_GB": 10}}, project="theirs", user="me", is_new=False
    )
    ours.call("DELETE", f"/allocations/{gone}")
    extra = ours.hold("extra", {other_host: {"VCPU": 1}})

    status, told, _ = bring(filled.url, at(target), "--verify-only")
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
    lines = told.splitlines()
    assert [line for line in expected if line not in lines] == [], told
    assert lines[-1] == f"{len(lines) - 1} differences"

    before = generations(ours)
    status, told, warned = bring(filled.url, at(target))
    assert (status, told) == (2, "")
    assert f"providers that the source has not: 1 ({stranger})" in warned
    assert f"consumers that the source has not: 1 ({extra})" in warned
    assert generations(ours) == before

    status, told, warned = bring(filled.url, at(target), "--others", "keep")
    assert (status, told) == (0, EVERYTHING), warned
    assert stranger in generations(ours)
    assert bring(filled.url, at(target), "--verify-only")[0] == 1

    status, told, warned = bring(filled.url, at(target), "--others", "remove")
    assert (status, told) == (0, EVERYTHING), warned
    assert stranger not in generations(ours)


def test_a_source_in_use_is_caught_up_with(
    source: Original, target: Running, bring: Run
) -> None:
    theirs = of_original(source)
    theirs.fill()
    assert bring(source.url, at(target))[0] == 0
    host, other = named("rechner-ä0"), named("rechner-ä1")

    # Two hosts exchange their names, and a server moves while another takes its place.
    for uuid, name in ((host, "interim"), (other, "rechner-ä0"), (host, "rechner-ä1")):
        theirs.call("PUT", f"/resource_providers/{uuid}", {"name": name})
    theirs.hold("0-1", {other: {"VCPU": 2, "MEMORY_MB": 1024}}, is_new=False)
    theirs.hold("1-1", {host: {"VCPU": 2, "MEMORY_MB": 1024}}, is_new=False)
    # Parent and child change places.
    numa, card = named("rechner-ä2-numa"), named("rechner-ä2-card")
    for uuid, name, parent in (
        (card, "rechner-ä2-card", named("rechner-ä2")),
        (numa, "rechner-ä2-numa", card),
    ):
        body = {"name": name, "parent_provider_uuid": parent}
        theirs.call("PUT", f"/resource_providers/{uuid}", body)
    # A host is given up, a new one gets its name, and a class of inventory goes.
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
    status, told, warned = bring(source.url, at(target), "--others", "remove")
    assert (status, told) == (0, "equal: 12 providers, 13 consumers\n"), warned


def test_between_two_of_ours_and_back_to_the_original(
    filled: Original, source: Original, target: Running, bring: Run, tmp_path: Path
) -> None:
    assert bring(filled.url, at(target))[0] == 0
    with running(tmp_path / "next", apis=("placement",), placement_prefix="") as following:
        assert bring(at(target), following.url)[0] == 0
        status, told, warned = bring(following.url, source.url)
        assert (status, told) == (0, EVERYTHING), warned
        # Whatever way it took.
        assert bring(filled.url, source.url, "--verify-only")[:2] == (0, told)


def test_names_that_the_target_does_not_know_are_told_before_anything_is_written(
    source: Original, target: Running, bring: Run, tmp_path: Path
) -> None:
    theirs = of_original(source)
    host = theirs.provider("host", {"VCPU": {"total": 1}})
    # The original's next release, as far as this goes.
    with sqlite3.connect(tmp_path / "original" / "placement.db") as database:
        for name in ("HW_OF_THE_FUTURE", "HW_OF_THE_FAR_FUTURE"):
            row = (name, "2030-01-01 00:00:00.000000")
            database.execute("insert into traits (name, created_at) values (?, ?)", row)
    theirs.set(host, "traits", ["HW_OF_THE_FUTURE"])
    status, told, warned = bring(source.url, at(target))
    assert (status, told) == (2, "")
    assert "does not know the trait HW_OF_THE_FUTURE" in warned
    assert host in warned
    assert "FAR_FUTURE" not in warned
    assert generations(of_ours(target)) == {}


def test_clouds_and_tokens_of_the_environment(
    filled: Original, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(tmp_path / "closed", auth="builtin", apis=("identity", "placement")) as closed:
        clouds = tmp_path / "closed" / "clouds.yaml"
        ran = subprocess.run(
            [
                *(sys.executable, "-m", "innkeeper.main", "placement-import"),
                *("--from-url", filled.url, "--to-cloud", "innkeeper"),
            ],
            env=environment(
                PYTHONPATH=str(SOURCE),
                OS_CLIENT_CONFIG_FILE=str(clouds),
                PLACEMENT_FROM_TOKEN="admin",
            ),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (ran.returncode, ran.stdout) == (
            0,
            EVERYTHING,
        ), ran.stderr
        for ours, theirs, token, status_told in (
            (filled.url, at(closed), "wrong", "401"),
            (at(closed), filled.url, "nobody", "403"),
        ):
            words_of_ours = ("--from-url", ours, "--from-token", "admin")
            words_of_theirs = ("--to-url", theirs, "--to-token", token)
            assert main(["placement-import", *words_of_ours, *words_of_theirs]) == 2
            (line,) = capsys.readouterr().err.splitlines()
            assert line.startswith(f"innkeeper placement-import: target ({theirs}): GET /")
            assert status_told in line


def test_wrong_use_is_one_line(capsys: pytest.CaptureFixture[str], filled: Original) -> None:
    def refused(*more: str) -> str:
        assert main(["placement-import", *more]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        return line

    assert "Where is the source?" in refused()
    ours = ("--from-url", filled.url, "--from-token", "admin")
    assert "Where is the target?" in refused(*ours)
    assert "are the same" in refused(*ours, "--to-url", f"{filled.url}/", "--to-token", "admin")
    nowhere = ("--to-url", f"{filled.url}/nowhere", "--to-token", "admin")
    assert "401 Unauthorized" in refused(*ours, *nowhere)
    assert "exclude each other" in refused("--from-cloud", "a", "--from-token", "b")
