"""Commits without an acknowledgement: nothing is done twice, and every request is answered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from innkeeper.domain.compute import Booted, BootRequest, Status
from innkeeper.domain.errors import Busy, Doubtful
from innkeeper.engine.retry import LOOK_UPS_MAX
from innkeeper.store.queries.compute import servers
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.compute.flavors import flavors
from innkeeper.systems.compute.servers import servers as server_rules
from tests.support.clouds import NOW, SMALL, Cloud, cloud_in, reported


class DeafStore(Store):
    """A store that raises an error after some of its commits, though they succeeded."""

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
    """The log events of a test."""
    with capture_logs() as captured:
        yield captured


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """A cloud of two hosts with room for four small servers each."""
    started = cloud_in(tmp_path, reported("a"), reported("b"))
    yield started
    started.reread()
    started.judge()
    started.close()


def turn_deaf(cloud: Cloud, *errors: Exception) -> None:
    deaf = DeafStore(cloud.store.backend, cloud.store.engines)
    deaf.errors = list(errors)
    cloud.store = deaf


def statuses(cloud: Cloud, request: BootRequest) -> list[str]:
    found = cloud.read(lambda tx: servers.alive(tx, request.server_ids))
    return [each.status for each in found]


def doubt() -> Doubtful:
    """The error of a store whose commit has an unknown outcome."""
    return Doubtful("The database did not say.")


def test_an_unacknowledged_boot_finds_its_servers(cloud: Cloud) -> None:
    turn_deaf(cloud, doubt())
    request = cloud.request(2)
    (answer,) = cloud.boot(request)
    assert answer == Booted(request.batch_id, request.server_ids)
    assert statuses(cloud, request) == [Status.BUILD] * 2
    assert cloud.boot(cloud.request(6)) != []


def test_every_unacknowledged_boot_of_a_batch_finds_its_servers(
    cloud: Cloud, logs: list[Any]
) -> None:
    turn_deaf(cloud, doubt())
    placed, nowhere, some = cloud.request(3), cloud.request(6), cloud.request(1, 9)
    answers = cloud.boot(placed, nowhere, some)
    output = [each for each in answers if isinstance(each, Booted)]
    assert [len(each.server_ids) for each in output] == [3, 6, 5], "and no more than were made"
    first, second, third = (each.fault for each in output)
    assert first is None and third is None
    assert second is not None and second.startswith("No valid host")
    assert statuses(cloud, nowhere) == [Status.ERROR] * 6
    assert cloud.table.used["VCPU"].sum() in (0, 8), "the table follows at the next step"
    assert "batch_failed" not in [each["event"] for each in logs]
    cloud.reread()
    assert cloud.table.used["VCPU"].sum() == 8


def test_a_boot_unacknowledged_twice_finds_its_servers(cloud: Cloud) -> None:
    """One request fails the batch, which is rolled back; then a commit is not acknowledged."""
    turn_deaf(cloud, doubt())
    good = cloud.request(2)
    answers = cloud.boot(good, cloud.request(metadata={"k": object()}))
    assert answers[0] == Booted(good.batch_id, good.server_ids)
    assert isinstance(answers[1], Exception)


def test_a_boot_never_acknowledged_has_an_unknown_outcome(cloud: Cloud) -> None:
    turn_deaf(cloud, *(doubt() for _ in range(LOOK_UPS_MAX + 1)))
    request = cloud.request(2)
    assert [type(each) for each in cloud.boot(request)] == [Doubtful]
    assert statuses(cloud, request) == [Status.BUILD] * 2
    assert cloud.boot(cloud.request(6)) != []


def test_a_boot_that_cannot_be_looked_up_has_an_unknown_outcome(cloud: Cloud) -> None:
    turn_deaf(cloud, doubt(), Busy("others"))
    assert [type(each) for each in cloud.boot(cloud.request())] == [Doubtful]


def test_a_boot_that_was_rolled_back_is_executed_by_its_look_up(cloud: Cloud) -> None:
    cloud.store = LosingOnce(cloud.store)
    request = cloud.request(2)
    assert cloud.boot(request) == [Booted(request.batch_id, request.server_ids)]
    assert statuses(cloud, request) == [Status.BUILD] * 2


class LosingOnce(Store):
    """A store whose first commit is rolled back, without an acknowledgement either."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.backend, store.engines)
        self._has_lost = False

    @contextmanager
    def write(self) -> Iterator[Tx]:
        """See ``Store``."""
        with super().write() as tx:
            yield tx
            if not self._has_lost:
                self._has_lost = True
                raise doubt()


def test_a_write_with_an_unknown_outcome_is_not_retried(cloud: Cloud) -> None:
    turn_deaf(cloud, doubt())
    request = cloud.request(1)
    made = flavors.create
    answers = cloud.carry_out(
        ("boot", request),
        ("write", lambda tx: made(tx, other("big"), now=NOW)),
        ("explain", cloud.request(1)),
    )
    assert answers[0] == Booted(request.batch_id, request.server_ids)
    assert isinstance(answers[1], Doubtful)
    assert answers[2].explanation.fault is None
    assert cloud.read(lambda tx: flavors.get(tx, "big", None, is_admin=True)).name == "big"


def other(name: str) -> Any:
    """A flavor like the small one."""
    return type(SMALL)(id=0, flavor_id=name, name=name, vcpus=1, memory_mb=1, disk_gb=0)


def test_a_boot_that_was_rolled_back_is_not_found(cloud: Cloud) -> None:
    request = cloud.request(2)
    assert cloud.read(lambda tx: cloud.executor.already_booted(tx, request)) is None
    cloud.boot(request)
    (server, _) = request.server_ids
    cloud.write(lambda tx: server_rules.finish_deletes(tx, [server], NOW))
    assert cloud.read(lambda tx: cloud.executor.already_booted(tx, request)) == Booted(
        request.batch_id, request.server_ids
    ), "a server that was deleted in between was booted all the same"


def test_a_busy_batch_is_not_looked_up(cloud: Cloud) -> None:
    turn_deaf(cloud, Busy("others"))
    assert [type(each) for each in cloud.boot(cloud.request())] == [Busy]
