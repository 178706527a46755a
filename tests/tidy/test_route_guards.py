"""Every guarded route of every API rejects a request without a token.

The handlers never run here. Their dependencies are replaced by objects that fail when used, so
that a route without a check is found even if its answer looks correct.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NoReturn

import pytest

from innkeeper.domain.errors import Refusal
from innkeeper.domain.slices import Serving, Settings
from innkeeper.entrypoints.api import app
from innkeeper.entrypoints.api.auth import NO_TOKEN, NoauthAuthenticator
from innkeeper.entrypoints.api.faults import Fault
from innkeeper.entrypoints.api.routing import Api, Route
from innkeeper.entrypoints.api.site import Site
from innkeeper.entrypoints.api.tables import APIS
from tests.support.asgi_client import AsgiClient
from tests.tidy.test_promises import PLACEHOLDER

SOME_ID = "6f1a2c7e-0d3b-4f55-9b8e-2f6f5a1f0c11"
NOON = datetime(2026, 1, 1, 12)  # noqa: DTZ001 - the core's clock is naive and in UTC


class Untouchable:
    """Fails on any use."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(f"A stranger reached {name}.")


class CountingIds:
    """Gives the same ids in every run."""

    def __init__(self) -> None:
        self.given = 0

    def uuid(self) -> str:
        """Give the next id."""
        self.given += 1
        return f"00000000-0000-4000-8000-{self.given:012x}"

    def seed(self) -> int:
        """Give the next seed."""
        self.given += 1
        return self.given


def guarded() -> list[Any]:
    """Every route that has a policy."""
    return [
        pytest.param(api, route, id=f"{api.name} {route.method} {route.path}")
        for api in APIS.values()
        for route in api.routes
        if route.rule is not None
    ]


@pytest.fixture(scope="module")
def door() -> Any:
    """A client of an application whose dependencies all fail when used."""
    untouchable: Any = Untouchable()
    site = Site(
        settings=Settings(serving=Serving(apis=tuple(APIS))),
        engine=untouchable,
        recordings=untouchable,
        policy=untouchable,
        authenticator=NoauthAuthenticator(),
        clock=lambda: NOON,
        ids=CountingIds(),
    )
    with AsgiClient(app.make(site, APIS, lambda: None)) as client:
        yield client


@pytest.mark.parametrize(("api", "route"), guarded())
def test_a_request_without_a_token_is_rejected(door: AsgiClient, api: Api, route: Route) -> None:
    path = getattr(Serving(), f"{api.name}_prefix") + PLACEHOLDER.sub(SOME_ID, route.path)
    headers = {"openstack-api-version": f"{api.service_type} latest"}
    answer = door.request(route.method, path or "/", headers=headers)
    assert answer.status_code == 401, answer.text
    assert answer.headers["www-authenticate"].startswith("Keystone uri=")
    assert answer.headers["x-openstack-request-id"].startswith("req-")
    # The body too has the format that clients of this API expect.
    form = api.fault_form(Fault(401, NO_TOKEN, Refusal.code, "req-1", accept="*/*"))[1]
    assert answer.headers["content-type"].partition(";")[0] == form.partition(";")[0]
    if route.method != "HEAD":
        assert NO_TOKEN in answer.text or "401 Unauthorized" in answer.text
