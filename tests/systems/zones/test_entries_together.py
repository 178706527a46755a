"""Each entry in a zone parent's request succeeds or fails alone, although one decision has all.

Each case is also carried out with one request for each entry, and has the same outcomes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from innkeeper.domain.compute import Booted, BootRequest, Server
from innkeeper.domain.errors import Busy, Doubtful, Refusal, Unauthenticated
from innkeeper.domain.ids import ServerId
from innkeeper.domain.slices import Computing, Scheduling
from innkeeper.domain.zones import EntryBoot
from innkeeper.engine.batches import PendingCommand, carry_out
from innkeeper.engine.commands import Admit, Boot, BootEntries
from innkeeper.store.queries.compute import quota_usages, server_actions, servers
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.compute.boot import entry_batches
from innkeeper.systems.compute.boot.entries import EntryStale, EntryUsed
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.zones import used_entries
from tests.support.clouds import NOW, Cloud, cloud_in, reported
from tests.support.failing_commits import FailingCommits

UNTIL = NOW + timedelta(seconds=60)
SETTINGS: list[dict[str, Any]] = [
    {},
    {"scheduling": Scheduling(explain_decisions="full")},
    {"computing": Computing(quota_instances=3, quota_cores=-1, quota_ram=-1)},
]


@pytest.fixture(params=SETTINGS, ids=["usual", "full explanations", "quota of three"])
def pair(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Cloud, Cloud]]:
    """Two equal clouds of two hosts with room for four small servers each."""
    clouds = []
    for name in ("together", "apart"):
        (tmp_path / name).mkdir()
        clouds.append(cloud_in(tmp_path / name, reported("a"), reported("b"), **request.param))
    yield clouds[0], clouds[1]
    for each in clouds:
        each.judge()
        each.close()


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """A cloud of two hosts with room for four small servers each."""
    started = cloud_in(tmp_path, reported("a"), reported("b"))
    yield started
    started.reread()
    started.judge()
    started.close()


def uuid(number: int) -> ServerId:
    return ServerId(f"10000000-0000-4000-8000-{number:012x}")


def entry(cloud: Cloud, number: int, host: str, **more: Any) -> EntryBoot:
    """An entry for a host, with ids of its own."""
    row = cloud.host(host) if host in ("a", "b") else None
    settled: dict[str, Any] = {
        "server_id": uuid(number),
        "name": f"web-{number}",
        "hostname": None,
        "launch_index": number,
        "host": host,
        "provider_uuid": "gone" if row is None else row.provider_uuid,
        "entry_id": uuid(1000 + number),
        "expires_at": UNTIL,
        **more,
    }
    return EntryBoot(**settled)


def asked(cloud: Cloud, *entries: EntryBoot, **more: Any) -> BootRequest:
    """The request of a parent with these entries."""
    request = cloud.request(1, project_id="up:project", batch_id="r-1", seed=7, **more)
    return replace(request, entries=entries)


def admitted(tx: Tx, is_repeat: bool) -> list[str]:
    """Admit everything."""
    del tx, is_repeat
    return []


def together(cloud: Cloud, request: BootRequest, admit: Admit = admitted) -> Any:
    """Boot all entries in one command."""
    (answer,) = carry_out(
        cloud.store, cloud.executor, [PendingCommand(BootEntries(request, admit))]
    )
    return answer


def kinds(outcomes: dict[ServerId, Booted | Refusal]) -> dict[ServerId, str]:
    return {each: type(outcome).__name__ for each, outcome in sorted(outcomes.items())}


def homes(cloud: Cloud) -> list[tuple[Any, ...]]:
    """All servers, with the fields that entries determine."""

    def look(tx: Tx) -> list[Server | None]:
        return [servers.by_uuid(tx, uuid(number)) for number in range(20)]

    return [
        (each.uuid, each.name, each.hostname, each.host, each.launch_index, each.batch_id)
        for each in cloud.read(look)
        if each is not None
    ]


def of_each(cloud: Cloud, case: str) -> list[EntryBoot]:
    """The entries of a case; some of them cannot be used."""
    rows = {
        "all": [entry(cloud, each, "ab"[each % 2]) for each in range(3)],
        "one host has no room for the fifth": [entry(cloud, each, "a") for each in range(6)],
        "a host is unknown": [entry(cloud, 0, "a"), entry(cloud, 1, "gone"), entry(cloud, 2, "b")],
        "a host has another provider now": [
            entry(cloud, 0, "a", provider_uuid="another"),
            entry(cloud, 1, "b"),
        ],
        "one is expired": [entry(cloud, 0, "a", expires_at=NOW), entry(cloud, 1, "b")],
        "two have one id": [
            entry(cloud, 0, "a"),
            entry(cloud, 1, "a", entry_id=uuid(1000)),
            entry(cloud, 2, "b"),
        ],
        "a host is disabled": [entry(cloud, 0, "a"), entry(cloud, 1, "b")],
        "host names are told": [entry(cloud, 0, "a", hostname="first"), entry(cloud, 1, "b")],
    }
    return rows[case]


def disable(cloud: Cloud, host: str) -> None:
    row, change = cloud.host(host), ServiceChange(is_disabled=True)
    cloud.write(lambda tx: hosts.change_service(tx, row, change, NOW))


def used(cloud: Cloud) -> set[str | None]:
    """The servers of used entries."""
    ids = [uuid(1000 + number) for number in range(9)]
    return set(cloud.read(lambda tx: used_entries.used(tx, ids)).values())


def decision(cloud: Cloud, number: int) -> dict[str, Any]:
    found = cloud.read(lambda tx: server_actions.decision(tx, uuid(number)))
    assert found is not None
    return {**found, "weight": 0, "parts": {}}


CASES = [
    "all",
    "one host has no room for the fifth",
    "a host is unknown",
    "a host has another provider now",
    "one is expired",
    "two have one id",
    "a host is disabled",
    "host names are told",
]


@pytest.mark.parametrize("case", CASES)
def test_each_entry_has_the_outcome_that_it_has_alone(pair: tuple[Cloud, Cloud], case: str) -> None:
    one, other = pair
    for each in pair:
        if case == "a host is disabled":
            disable(each, "b")
    found = together(one, asked(one, *of_each(one, case)))
    request = asked(other, *of_each(other, case))
    expected: dict[ServerId, Booted | Refusal] = {}
    for row in request.entries:
        (answer,) = other.boot(entry_batches.alone(request, row))
        expected[row.server_id] = answer
    assert kinds(found) == kinds(expected)
    assert homes(one) == homes(other)
    for cloud in pair:
        assert used(cloud) == {row[0] for row in homes(cloud)}


def test_a_server_keeps_the_decision_about_its_own_host(cloud: Cloud) -> None:
    together(cloud, asked(cloud, entry(cloud, 0, "a"), entry(cloud, 1, "b")))
    alone = entry_batches.alone(asked(cloud), entry(cloud, 2, "b"))
    cloud.boot(alone)
    assert decision(cloud, 1) == decision(cloud, 2)


def test_an_entry_that_was_used_is_not_used_again(cloud: Cloud) -> None:
    request = asked(cloud, entry(cloud, 0, "a"), entry(cloud, 1, "b"))
    together(cloud, request)
    again = together(cloud, request)
    assert kinds(again) == {uuid(0): "EntryUsed", uuid(1): "EntryUsed"}
    # The request for another server has an entry that has already made the first server.
    other = together(cloud, asked(cloud, entry(cloud, 2, "b", entry_id=uuid(1000))))
    assert isinstance(other[uuid(2)], EntryUsed)
    assert [each[0] for each in homes(cloud)] == [uuid(0), uuid(1)]


def test_a_refused_admission_builds_nothing(cloud: Cloud) -> None:
    def refuse(tx: Tx, is_repeat: bool) -> list[str]:
        del tx, is_repeat
        raise Unauthenticated("no")

    found = together(cloud, asked(cloud, entry(cloud, 0, "a")), refuse)
    assert isinstance(found, Unauthenticated)
    assert homes(cloud) == []


def test_servers_that_are_not_admitted_are_left_out(cloud: Cloud) -> None:
    request = asked(cloud, entry(cloud, 0, "a"), entry(cloud, 1, "b"))
    found = together(cloud, request, lambda _, __: [uuid(0)])
    assert kinds(found) == {uuid(1): "Booted"}
    assert together(cloud, request, lambda _, __: [uuid(0), uuid(1)]) == {}


def test_a_failed_commit_takes_the_admission_along(cloud: Cloud) -> None:
    def admit(tx: Tx, is_repeat: bool) -> list[str]:
        del is_repeat
        used_entries.use(tx, uuid(500), uuid(501), UNTIL)
        return []

    request = asked(cloud, entry(cloud, 0, "a"))
    command = PendingCommand(BootEntries(request, admit))
    (answer,) = carry_out(FailingCommits(cloud.store), cloud.executor, [command])
    assert isinstance(answer, Busy)
    assert not cloud.read(lambda tx: used_entries.used(tx, [uuid(500), uuid(1000)]))
    assert isinstance(together(cloud, request, admit)[uuid(0)], Booted)
    assert len(cloud.read(lambda tx: used_entries.used(tx, [uuid(500), uuid(1000)]))) == 2


class LostAnswer(Store):
    """A store whose first commit succeeds, although it seems lost."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.backend, store.engines)
        self.has_lost = False

    @contextmanager
    def write(self) -> Iterator[Tx]:
        with super().write() as tx:
            yield tx
        if not self.has_lost:
            self.has_lost = True
            raise Doubtful("The database did not say.")


def test_a_retry_after_a_lost_acknowledgement_finds_the_servers(cloud: Cloud) -> None:
    repeats = []

    def admit(tx: Tx, is_repeat: bool) -> list[str]:
        del tx
        repeats.append(is_repeat)
        return []

    request = asked(cloud, entry(cloud, 0, "a"), entry(cloud, 1, "b"))
    command = PendingCommand(BootEntries(request, admit))
    (answer,) = carry_out(LostAnswer(cloud.store), cloud.executor, [command])
    assert repeats == [False, True]
    assert isinstance(answer, dict)
    assert all(isinstance(each, EntryUsed) and each.server_id == e for e, each in answer.items())
    assert len(homes(cloud)) == 2


def test_entries_that_fail_together_are_booted_one_by_one(cloud: Cloud) -> None:
    """A server of another project has the same id as one of the entries' servers."""
    cloud.boot(replace(cloud.request(), server_ids=(uuid(1),)))
    request = asked(cloud, *(entry(cloud, each, "a") for each in range(3)))
    admissions = []

    def admit(tx: Tx, is_repeat: bool) -> list[str]:
        del tx, is_repeat
        admissions.append(1)
        if len(admissions) == 1:
            raise RuntimeError("a failure that no single entry explains")
        return []

    found = together(cloud, request, admit)
    assert kinds(found) == {uuid(0): "Booted", uuid(1): "EntryUsed", uuid(2): "Booted"}
    assert len(admissions) == 2


def test_other_boots_of_the_batch_count(cloud: Cloud) -> None:
    boots = [Boot(cloud.request(3)), Boot(cloud.request(3))]
    request = asked(cloud, *(entry(cloud, each, "a") for each in range(4)))
    commands = [*boots, BootEntries(request, admitted)]
    answers = carry_out(cloud.store, cloud.executor, [PendingCommand(each) for each in commands])
    assert all(isinstance(each, Booted) and each.fault is None for each in answers[:2])
    last = answers[2]
    assert isinstance(last, dict)
    assert sorted(type(each).__name__ for each in last.values()) == [
        "Booted",
        "EntryStale",
        "EntryStale",
        "EntryStale",
    ]
    assert all(isinstance(each, Booted | EntryStale) for each in last.values())
    usage = cloud.read(lambda tx: quota_usages.of_projects(tx, {"up:"}))["up:"]
    assert usage.servers == 1
