"""Requests that are too large are refused after counting, before they cost more."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from innkeeper.entrypoints.api.identity.routes import LOGIN_BYTES_MAX
from innkeeper.entrypoints.api.unpacking import QUERY_FIELDS_MAX
from tests.support.running import Running, running

LOGIN = "/identity/v3/auth/tokens"
PROVIDERS = "/placement/resource_providers"
NEWEST = {"openstack-api-version": "placement 1.39"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One service for all tests."""
    with running(tmp_path_factory.mktemp("much"), auth="builtin") as started:
        yield started


@pytest.fixture(scope="module")
def token(service: Running) -> str:
    """The administrator's token."""
    user = {"name": "admin", "password": service.admin_password(), "domain": {"id": "default"}}
    scope = {"project": {"name": "admin", "domain": {"id": "default"}}}
    identity = {"methods": ["password"], "password": {"user": user}}
    auth = {"auth": {"identity": identity, "scope": scope}}
    return str(service.call("POST", LOGIN, None, json=auth).headers["x-subject-token"])


def test_unauthenticated_bodies_are_bounded_more_tightly(service: Running) -> None:
    headers = {"content-type": "application/json"}
    answer = service.call("POST", LOGIN, None, content=b" " * LOGIN_BYTES_MAX, headers=headers)
    assert answer.status_code == 400
    much = b" " * (LOGIN_BYTES_MAX + 1)
    answer = service.call("POST", LOGIN, None, content=much, headers=headers)
    assert answer.status_code == 413
    assert answer.json()["error"]["message"] == "The body is larger than 65536 bytes."


def test_authenticated_bodies_may_be_larger(service: Running, token: str) -> None:
    body = {"name": "a", "text": "x" * 65535, "more": "y" * 65535}
    assert service.call("POST", "/image/v2/images", token, json=body).status_code == 201


@pytest.mark.parametrize("field", ["required=HW_CPU_X86_AVX", "member_of=in:" + "a" * 8, "a", ""])
def test_a_query_has_an_end(service: Running, token: str, field: str) -> None:
    query = "&".join([field] * (QUERY_FIELDS_MAX + 1))
    answer = service.call("GET", f"{PROVIDERS}?{query}", token, headers=NEWEST)
    assert answer.status_code == 400
    assert "more than 256 fields" in answer.text


def asked(service: Running, token: str, query: str) -> int:
    return int(service.call("GET", f"{PROVIDERS}?{query}", token, headers=NEWEST).status_code)


@pytest.mark.parametrize("field", ["required=HW_CPU_X86_AVX", f"member_of={uuid.UUID(int=7)}"])
def test_as_many_fields_as_may_be_are_answered(service: Running, token: str, field: str) -> None:
    assert asked(service, token, "&".join([field] * QUERY_FIELDS_MAX)) == 200


def test_one_field_has_an_end_as_well(service: Running, token: str) -> None:
    names = ",".join(["HW_CPU_X86_AVX"] * 1000)
    assert asked(service, token, f"required={names}") == 400
    assert asked(service, token, f"required=in:{names}") == 200
    amounts = ",".join(f"CUSTOM_{number}:1" for number in range(1000))
    assert asked(service, token, f"resources={amounts}") == 400
