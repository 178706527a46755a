"""Random requests by the service's own OpenAPI document: no request is answered with a 500.

``FUZZ_EXAMPLES`` is the number of requests per route; more requests find more, and take longer.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, settings

from innkeeper.domain.slices import Serving
from innkeeper.entrypoints.api import openapi
from innkeeper.entrypoints.api.tables import APIS
from tests.support.running import Running, running

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "15"))
NEVER = 500
EVERYBODY = {"x-auth-token": "admin", "x-roles": "admin,service"}
"""All roles: some routes are only for services, and a refusal by policy would test nothing."""

FRAMING = frozenset(
    {"connection", "content-length", "expect", "host", "transfer-encoding", "upgrade"}
)
"""Headers that say where a request ends. With a wrong one, the HTTP server itself refuses it."""
PLAN_KEY = "c286696d887c9aa0611bbb3e2025a45b"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("fuzz")
    more = {"apis": tuple(APIS), "build_plan_encryption_key": [PLAN_KEY]}
    with running(folder, work_poll_s=0.05, **more) as started:
        yield started


@schemathesis.serializer("application/openstack-images-v2.1-json-patch")
def as_json(_context: Any, value: Any) -> bytes:
    """Send a patch of an image as JSON, under its own media type."""
    return msgspec.json.encode(value)


# The document depends only on the route tables, so the tests can be collected without a service.
MOUNTS = {name: getattr(Serving(), f"{name}_prefix") for name in APIS}
schema = schemathesis.openapi.from_dict(openapi.document(APIS, MOUNTS))


def test_the_service_gives_the_same_document(service: Running) -> None:
    given = service.call("GET", "/openapi.json").json()
    assert given["paths"].keys() == openapi.document(APIS, MOUNTS)["paths"].keys()


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    # The service is started once for all examples, on purpose.
    suppress_health_check=list(HealthCheck),
)
def test_never_an_accident(case: Any, service: Running) -> None:
    for name in [each for each in case.headers or () if each.lower() in FRAMING]:
        del case.headers[name]
    response = case.call(base_url=service.url, headers=EVERYBODY)
    assert response.status_code < NEVER, response.text
    if response.status_code >= 400 and response.content:
        assert response.headers["x-openstack-request-id"][0].startswith("req-")
