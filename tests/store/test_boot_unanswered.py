"""Commits that happen and are not heard of: nothing is done twice, nobody left unanswered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from innkeeper.domain.compute import Booted, BootRequest, Status
from innkeeper.domain.errors import AlreadyExists, Busy, Unavailable
from innkeeper.store.queries import servers
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.compute import flavors, recovery
from innkeeper.systems.compute import servers as lives
from tests.support.clouds import NOW, SMALL, Cloud, cloud_in, reported


class DeafStore(Store):
    """A store that hears of an error after some of its commits, though they happened."""

    errors: list[Exception]

    @contextmanager
    def write(self) -> Iterator[Tx]:
        """See ``Store``."""
        with super().write() as tx:
            yield tx
        if self.errors:
            raise self.errors.pop(0)


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[Any]]:
    """What is logged meanwhile."""
    with capture_logs() as captured:
        yield captured


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """A cloud of two hosts with room for four small servers each."""
    started = cloud_in(tmp_path, reported("a"), reported("b"))
    yield started
    started.mend()
    started.judge()
    started.close()


def turn_deaf(cloud: Cloud, *errors: Exception) -> None:
    deaf = DeafStore(cloud.store.backend, cloud.store.engines)
    deaf.errors = list(errors)
    cloud.store = deaf


def statuses(cloud: Cloud, request: BootRequest) -> list[str]:
    found = cloud.read(lambda tx: servers.alive(tx, request.server_ids))
    return [each.status for each in found]


LOST = [
    pytest.param(Unavailable("The database does not answer."), id="no answer"),
    pytest.param(sa.exc.DatabaseError("COMMIT", {}, Exception("gone")), id="an odd answer"),
]


@pytest.mark.parametrize("error", LOST)
def test_one_boot_finds_its_servers(cloud: Cloud, error: Exception) -> None:
    turn_deaf(cloud, error)
    request = cloud.request(2)
    (answer,) = cloud.boot(request)
    assert answer == Booted(request.batch_id, request.server_ids)
    assert statuses(cloud, request) == [Status.BUILD] * 2
    assert cloud.boot(cloud.request(6)) != []


@pytest.mark.parametrize("error", LOST)
def test_every_boot_of_a_batch_finds_its_servers(
    cloud: Cloud, error: Exception, logs: list[Any]
) -> None:
    turn_deaf(cloud, error)
    placed, nowhere, some = cloud.request(3), cloud.request(6), cloud.request(1, 9)
    answers = cloud.boot(placed, nowhere, some)
    told = [each for each in answers if isinstance(each, Booted)]
    assert [len(each.server_ids) for each in told] == [3, 6, 5], "and no more than were made"
    first, second, third = (each.fault for each in told)
    assert first is None and third is None
    assert second is not None and second.startswith("No valid host")
    assert statuses(cloud, nowhere) == [Status.ERROR] * 6
    assert cloud.table.used["VCPU"].sum() in (0, 8), "the table follows at the next step"
    assert "batch_failed" not in [each["event"] for each in logs]
    cloud.mend()
    assert cloud.table.used["VCPU"].sum() == 8


def test_a_repeated_boot_that_is_not_heard_of_either_finds_its_servers(cloud: Cloud) -> None:
    """The batch is undone by one that cannot be written; then a commit is not heard of."""
    turn_deaf(cloud, Unavailable("gone"))
    good = cloud.request(2)
    answers = cloud.boot(good, cloud.request(metadata={"k": object()}))
    assert answers[0] == Booted(good.batch_id, good.server_ids)
    assert isinstance(answers[1], Exception)


def test_a_write_that_is_repeated_finds_its_own_work(cloud: Cloud) -> None:
    turn_deaf(cloud, Unavailable("gone"))
    request = cloud.request(1)
    made = flavors.create
    answers = cloud.carry_out(
        ("boot", request),
        ("write", lambda tx: made(tx, other("big"), now=NOW)),
        ("write", lambda tx: None),
    )
    assert answers[0] == Booted(request.batch_id, request.server_ids)
    assert [type(each) for each in answers[1:]] == [AlreadyExists, type(None)]


def other(name: str) -> Any:
    """A flavor like the small one."""
    return type(SMALL)(id=0, flavor_id=name, name=name, vcpus=1, memory_mb=1, disk_gb=0)


def test_what_did_not_happen_is_not_found(cloud: Cloud) -> None:
    request = cloud.request(2)
    assert cloud.read(lambda tx: recovery.already_booted(tx, request)) is None
    cloud.boot(request)
    (server, _) = request.server_ids
    cloud.write(lambda tx: lives.finish_deletes(tx, [server], NOW))
    assert cloud.read(lambda tx: recovery.already_booted(tx, request)) == Booted(
        request.batch_id, request.server_ids
    ), "a server that was deleted in between was booted all the same"


def test_who_waited_for_others_does_not_look(cloud: Cloud) -> None:
    turn_deaf(cloud, Busy("others"))
    assert [type(each) for each in cloud.boot(cloud.request())] == [Busy]
