"""A request about whole hosts is retried after a conflict, a limited number of times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from innkeeper.domain.slices import Serving, Settings
from innkeeper.engine.retry import WHOLE_HOSTS
from innkeeper.entrypoints.api import app
from innkeeper.entrypoints.api.auth import NoauthAuthenticator
from innkeeper.entrypoints.api.policy import OsloPolicy
from innkeeper.entrypoints.api.site import Site
from innkeeper.entrypoints.api.tables import APIS
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from tests.support.asgi_client import AsgiClient
from tests.support.clouds import NOW, Cloud, reported
from tests.support.lease_operator import LeaseOperator
from tests.support.moves import Movers
from tests.support.pcloud_operator import PcloudOperator

RIVAL = """
CREATE TRIGGER rival BEFORE UPDATE ON resource_providers BEGIN SELECT RAISE(IGNORE); END
"""
"""A condition with which an update matches no row, as if another process had been faster."""
ATTEMPTS_MAX = WHOLE_HOSTS.attempts(Settings())
MEMBER = {"x-auth-token": "ann:project", "x-roles": "member"}
ADMIN = {"x-auth-token": "admin", "openstack-api-version": "compute 2.100"}
LEASE = {
    "name": "lease",
    "start_date": "now",
    "end_date": "2999-01-01 00:00",
    "reservations": [
        {
            "resource_type": "physical:host",
            "min": 1,
            "max": 1,
            "hypervisor_properties": "",
            "resource_properties": "",
        }
    ],
    "events": [],
    "before_end_date": None,
}


class Overtaken:
    """Reads and writes for the handlers; this many writes conflict with another process."""

    def __init__(self, cloud: Cloud, overtakes: int) -> None:
        self._cloud = cloud
        self._overtakes = overtakes
        self.attempts = 0
        cloud.write(lambda tx: tx.exec_driver_sql(RIVAL))

    async def write(self, work: Callable[[Tx], Any], lines: int = 1) -> Any:
        """See ``Engine``."""
        self.attempts += 1
        if self.attempts == self._overtakes + 1:
            self._cloud.write(lambda tx: tx.exec_driver_sql("DROP TRIGGER rival"))
        return self._cloud.write(work)

    async def decide(self, work: Callable[[Tx, DecisionContext], Any], now: datetime) -> Any:
        """See ``Engine``."""
        self.attempts += 1
        if self.attempts == self._overtakes + 1:
            self._cloud.write(lambda tx: tx.exec_driver_sql("DROP TRIGGER rival"))
        return self._cloud.decide(work, now)

    async def read(self, work: Callable[[Tx], Any]) -> Any:
        """See ``Engine``."""
        return self._cloud.read(work)


class Asking:
    """Posts to the application of a cloud in which this many writes conflict."""

    def __init__(self, operator: PcloudOperator, overtakes: int) -> None:
        self.operator = operator
        self.engine = Overtaken(operator.cloud, overtakes)
        parts: Any = self.engine
        site = Site(
            settings=Settings(serving=Serving(apis=tuple(APIS))),
            engine=parts,
            recordings=parts,
            policy=OsloPolicy([rule for api in APIS.values() for rule in api.rules], None),
            authenticator=NoauthAuthenticator(),
            clock=lambda: NOW,
            ids=operator.cloud.ids,
        )
        self._app = app.make(site, APIS, lambda: None)

    def __call__(self, path: str, body: Any, headers: dict[str, str]) -> Any:
        """Send a POST; returns the answer."""
        with capture_logs(), AsgiClient(self._app) as client:
            return client.post(path, json=body, headers=headers)


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[PcloudOperator]:
    """A free host of a flavor, one in the freepool, and a pcloud."""
    made = PcloudOperator(Movers(tmp_path, *map(reported, ("a1", "a2", "b1"))))
    made.define("gold", 1)
    made.switch_service("a1", ServiceChange(is_disabled=True))
    made.pool("gold", "a1", by_aggregate=False)
    LeaseOperator(made.movers).keep("a2")
    yield made
    made.movers.close()


def take_a_host(operator: PcloudOperator, overtakes: int) -> tuple[Asking, Any]:
    uuid = operator.create("project", name="p")
    ask = Asking(operator, overtakes)
    path = f"/compute/v2.1/os-pclouds/{uuid}/hosts"
    body = {"host": {"name": "mine", "host_flavor": "gold"}}
    return ask, ask(path, body, MEMBER)


def take_several(operator: PcloudOperator, overtakes: int) -> tuple[Asking, Any]:
    uuid = operator.create("project", name="p")
    ask = Asking(operator, overtakes)
    path = f"/compute/v2.1/os-pclouds/{uuid}/hosts"
    body = {"hosts": [{"name": "mine", "host_flavor": "gold"}]}
    return ask, ask(path, body, MEMBER)


def put_into_aggregate(operator: PcloudOperator, overtakes: int) -> tuple[Asking, Any]:
    row = operator.row_of(operator.create("project", name="p"))
    ask = Asking(operator, overtakes)
    path = f"/compute/v2.1/os-aggregates/{row}/action"
    return ask, ask(path, {"add_host": {"host": "a1"}}, ADMIN)


def lease(operator: PcloudOperator, overtakes: int) -> tuple[Asking, Any]:
    ask = Asking(operator, overtakes)
    return ask, ask("/reservation/v1/leases", LEASE, MEMBER)


def keep_for_leases(operator: PcloudOperator, overtakes: int) -> tuple[Asking, Any]:
    ask = Asking(operator, overtakes)
    return ask, ask("/reservation/v1/os-hosts", {"name": "b1"}, ADMIN)


REQUESTS = [take_a_host, take_several, put_into_aggregate, lease, keep_for_leases]


@pytest.mark.parametrize("overtakes", [0, 1, ATTEMPTS_MAX - 1])
@pytest.mark.parametrize("request_of", REQUESTS)
def test_an_overtaken_request_is_retried(
    operator: PcloudOperator, request_of: Callable[..., tuple[Asking, Any]], overtakes: int
) -> None:
    ask, answer = request_of(operator, overtakes)
    assert answer.status_code in (200, 201), answer.text
    assert ask.engine.attempts == overtakes + 1


@pytest.mark.parametrize("request_of", REQUESTS)
def test_after_the_last_attempt_the_client_gets_409(
    operator: PcloudOperator, request_of: Callable[..., tuple[Asking, Any]]
) -> None:
    before = operator.world()
    ask, answer = request_of(operator, ATTEMPTS_MAX)
    assert answer.status_code == 409
    assert ask.engine.attempts == ATTEMPTS_MAX
    (output,) = {each for each in texts(answer.json()) if each == WHOLE_HOSTS.answer}
    assert "Repeat the request" in output
    assert operator.world().members == before.members


def texts(body: Any) -> Iterator[str]:
    """All texts in a body, at any depth."""
    if isinstance(body, dict):
        for each in body.values():
            yield from texts(each)
    elif isinstance(body, str):
        yield body
